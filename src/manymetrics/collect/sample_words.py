"""The material of the sample bank: phrases, and nothing else.

    ASPECTS     what an utterance can be about at once: aspect -> value -> ways to say it
    DOMAINS     one family of tasks each: which aspect decides the label, and how people talk there
    OUTSIDERS   matters that have nothing to do with any family, or with one another
    FRAMES, BARE_FRAMES, FILLERS, GREETINGS     what holds a sentence together

A phrase never contains the name of its own value, so that a label cannot be read off the text. Phrases of the aspect
`action` are followed by a thing, phrases of `object` are things, all others can stand anywhere in a sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Phrases = tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """How people talk in one family of tasks, and which aspect decides the labels there."""

    aspect: str
    things: Phrases  # what is talked about where no `object` of the shared stock is
    asides: Phrases  # half sentences that only tell the domain


@dataclass(frozen=True)
class Outsider:
    """A matter of its own: label -> phrases, and asides that say nothing about the label."""

    labels: Mapping[str, Phrases]
    asides: Phrases


def _split(line: str) -> Phrases:
    return tuple(phrase.strip() for phrase in line.split("|"))


def _values(**lines: str) -> dict[str, Phrases]:
    return {value.replace("_", "-"): _split(line) for value, line in lines.items()}


ASPECTS: Mapping[str, Mapping[str, Phrases]] = {
    "action": _values(
        cancel="call off|put an end to|get rid of|stop|end|quit|terminate|no longer have",
        change="swap|alter|modify|switch|adjust|edit|make an adjustment to|switch over",
        order="buy|purchase|get me|buy me|sign up for|reserve|get hold of|shop for",
        price="find out the cost of|say how much i pay for|quote me a sum for|tell me the fee for|"
        "work out the expense of|see what it costs to have|calculate the cost of|say how much money i need for",
        track="locate|find|say where i find|trace|see where they put|look up the whereabouts of|see how far along is|"
        "search for",
        refund="return|send back|bring back|hand back|take back|ship back|give back|post back",
        repair="fix|mend|get someone to fix|sort out|restore|patch up|get somebody to mend|put right",
        explain="teach me about|walk me through|describe|help me understand|clarify|spell out|tell me about|"
        "make me understand",
        share="pass on|forward|let others use|give access to|pass round|give others access to|send everybody|"
        "open up to everybody",
        lock="block|freeze|secure|shut|put a password on|shut off|protect|bar",
        compare="weigh up|set side by side|see which is better of|tell the difference in|rank|see the better of|"
        "contrast|judge between",
        renew="extend|prolong|carry on with|keep going with|continue|continue with|go on with|have another year of",
        confirm="double check|verify|make certain of|approve|validate|check again|say yes to|verify again",
        rename="give a different title to|call by another word|retitle|relabel|give a fresh title to|"
        "edit the title of|put a new title on|relabel once more",
    ),
    "object": _values(
        light="the reading lamp|the ceiling bulbs|the spots above the table|the chandelier|the led strip|"
        "the night glow",
        heating="the radiator|the boiler|the thermostat|the underfloor warmth|the furnace|the stove pipe",
        washer="the laundry machine|the tumble dryer|the spin cycle|the dirty clothes drum|the linen program|"
        "the delicates wash",
        television="the big screen|the tv set|the flat panel|the cable box|the remote for the channels|the film player",
        speaker="the music box|the stereo|the loud hifi|the bass|the headphones|the sound bar",
        door="the front gate|the entrance|the key lock|the latch|the porch entry|the garage shutter",
        oven="the baking hob|the grill|the microwave|the stove top|the roaster|the cooker",
        blinds="the curtains|the shades|the window shutters|the awning|the drapes|the sun screens",
        phone="my mobile|the handset|my smartphone|the sim card|the cell|my android",
        car="my vehicle|the sedan|the hatchback|the suv|my old volkswagen|the family van",
        bicycle="the two wheeler|my mountain bike|the pedals and chain|the racing cycle|the handlebars|the tandem",
        computer="my laptop|the notebook pc|the keyboard|the desktop machine|the macbook|the workstation",
        camera="the lens|the photo gear|the surveillance eye|the webcam|the tripod kit|the film roll",
        clock="the alarm timer|my wristwatch|the cuckoo dial|the stopwatch|the hour hand|the timepiece",
        printer="the ink cartridge|the paper tray|the toner|the copier|the scanner bed|the label maker",
        bed="the mattress|the pillow set|the blankets|the bunk|the quilt|the sleeping cot",
        fridge="the freezer|the ice box|the cold larder|the wine cooler|the icemaker|the chilled drawer",
        vacuum="the hoover|the dust sucker|the floor robot|the carpet sweeper|the mop|the cleaning bot",
        shoes="my boots|the sneakers|the sandals|the leather pumps|my slippers|the running trainers",
        book="the novel|the paperback|the thick volume|the reader with chapters|the encyclopedia|the memoir",
    ),
    "time": _values(
        morning="before breakfast|at sunrise|when i get up|at the crack of dawn|by eight o'clock|"
        "with the first coffee|when the rooster crows|early in the day",
        noon="around lunch|at twelve sharp|in the midday break|while others eat their sandwiches|at half past twelve|"
        "over the lunch hour|when the sun stands highest|in the middle of the day",
        night="after dark|past bedtime|around eleven pm|while everyone sleeps|in the small hours|at twelve am|"
        "under the moon|late in the evening",
        weekend="on saturday|this sunday|when i am off work|on my free days|saturday or sunday|"
        "once the working days are over|after friday|on my days off",
        spring="in april|when the tulips bloom|around easter|as soon as the snow melts|in the month of may|"
        "when the trees turn green|at the end of march|when the birds come back",
        summer="in july|during the hottest months|in august|at beach season|in the long school break|around midyear|"
        "when it is bathing weather|in late june",
        autumn="in october|when the leaves fall|around halloween|at harvest|in the month of november|"
        "as the days get shorter|in mid september|in mushroom season",
        winter="in january|around christmas|in the coldest months|at skiing season|in december|by new year's eve|"
        "when it freezes|in february",
        past="last month|a few days ago|yesterday already|two weeks back|some time before|the other day|"
        "back in the old days|an hour ago",
        workday="on monday|every tuesday|between nine and five|in office hours|this wednesday|on thursday|"
        "during my shift|midweek",
        distant="twelve months from now|in the year ahead|after the calendar turns|in the far future|"
        "a long while from today|two decades on|when i am older|several years on",
        monthly="every four weeks|on the first of each month|regularly|once per quarter|again and again|"
        "at fixed intervals|twice every thirty days|like a subscription",
    ),
    "problem": _values(
        late="it still has not come|it is overdue|i keep waiting for it|it was held up|it is way behind schedule|"
        "the promised date went by|it arrived after weeks|it got delayed",
        broken="it snapped in two|it is cracked|it does not switch on|it came apart|it is in pieces|it has died|"
        "it shattered|it quit working",
        undersized="it does not fit me|it is too tight|i need a larger one|it squeezes|it is a size down|"
        "it turned out tiny|it is narrower than said|it would suit a doll",
        wrong_colour="i wanted blue not green|it is red instead of black|the shade differs from the picture|"
        "it should have been white|it is pink|the tint is off|it looks yellow|grey was what i chose",
        leak="water drips out|it is wet underneath|there is a puddle|it lets liquid through|it oozes|"
        "it spills everywhere|the seal does not hold|it soaks the carpet",
        noise="it rattles|it hums loudly|it squeaks|it makes a racket|it buzzes|it bangs and clatters|"
        "the whirring is unbearable|it screeches",
        smell="it stinks|it has a foul odour|it reeks of glue|it gives off fumes|it is musty|"
        "my nose cannot bear it|there is a whiff of plastic|it pongs",
        missing="a part is not in the box|the screws were left out|half of it is absent|there is no cable with it|"
        "the manual is not there|one piece is lacking|the lid is nowhere|it came incomplete",
        overcharged="i paid twice|the bill is too high|you took more than agreed|the sum is wrong|"
        "i was debited extra|the discount was not applied|they billed me double|the total is inflated",
        dirty="it is full of stains|there is dust on it|it is grimy|it came with mud|it has spots|"
        "it is smeared with grease|someone used it before|it is covered in dirt marks",
        hot="it gets burning to the touch|it overheats|it smokes|i scorched my fingers|it nearly caught fire|"
        "its temperature keeps climbing|it glows|it melts",
        mixed_up="somebody else's parcel came|i never asked for this one|you confused two customers|"
        "it is a different item|the address was another person's|this belongs to a stranger|"
        "not the article i chose|you sent something else",
    ),
    "body": _values(
        eyes="i see blurry|my vision is fading|my glasses no longer suit|everything looks double|my lids itch|"
        "bright lamps blind me|i cannot read the small print|my contact lenses sting",
        teeth="my molar hurts|my gums bleed|a filling fell out|i need braces|my jaw aches when chewing|"
        "there is a hole in my incisor|cold drinks hurt when i bite|my wisdom one is coming through",
        skin="i have a rash|there is a strange mole|my face is full of pimples|i itch all over|i have dry patches|"
        "there are red blotches|a wart came up|i have eczema",
        heart="my pulse is racing|my blood pressure is up|there is a tightness in the chest|my beat skips|"
        "i have palpitations|i had a bypass|my ecg looked odd|the cardiologist told me to come",
        back="my spine is stiff|i cannot bend over|i slipped a disc|my lumbar hurts|i sit crooked|"
        "lifting boxes wrecked my vertebrae|my posture is bad|i have sciatica",
        stomach="i feel sick after eating|i have cramps in the belly|my digestion is upset|i have heartburn|"
        "i throw up|i am bloated|my gut is in knots|i have diarrhoea",
        ears="i hear ringing|i am going deaf|there is wax inside|i cannot follow a conversation|"
        "my hearing aid whistles|i have tinnitus|sounds are muffled|the eardrum burst",
        mind="i feel down all the time|i panic in crowds|i cry for no reason|i am burnt out|my thoughts go in circles|"
        "i have anxiety attacks|i see no point in anything|i need therapy",
        sleep="i lie awake for hours|i snore|i have nightmares|i wake up tired|insomnia is killing me|"
        "i toss and turn|i doze off at work|i cannot nod off",
        feet="my ankle is swollen|my toes are numb|i have a blister on the heel|my arch hurts|i limp|"
        "i have an ingrown nail|my sole burns|i twisted it while jogging",
        lungs="i cough a lot|i am short of breath|i wheeze|my asthma is back|i have bronchitis|"
        "i need an inhaler|breathing hurts|i gasp on the stairs",
        pregnancy="i am expecting|the baby kicks|i am in my third trimester|my due date is near|"
        "the ultrasound is due|i have morning sickness|the midwife sent me|contractions have begun",
    ),
    "impact": _values(
        outage="nobody can work|everything is down|the whole company stands still|all servers are dead|"
        "every site is offline|the entire building is cut off|production has stopped|not a single user gets in",
        team="our department is stuck|five of us cannot go on|my group has no access|"
        "the colleagues on my floor have it|"
        "sales people all see it|our unit is affected|several desks report it|the accounting guys suffer too",
        slow="it takes ages|it crawls|it lags|i wait minutes for each click|it is sluggish|"
        "the pages load forever|it stutters|it drags along",
        cosmetic="it merely looks ugly|a pixel is off|the font is strange|it is only the layout|a logo is crooked|"
        "just a spelling slip|the icon is blurred|a border is misaligned",
        security="somebody hacked us|i clicked a phishing link|my password was stolen|there is a virus|"
        "a stranger logged in as me|it looks like ransomware|our data leaked|an intruder got through",
        loss="my files are gone|the folder is empty|everything i typed vanished|the backup is wiped|"
        "a month of records got deleted|i cannot recover my documents|it erased my notes|the database is blank",
        question="i am only curious|just wondering|for my information|nothing is wrong really|i merely want to know|"
        "out of interest|a small thing to ask|could not find it in the manual",
        recurring="it happens again and again|for the third time now|it keeps coming back|the same as last time|"
        "it returns after each restart|once more as always|it never stays solved|every few hours anew",
        deadline="my presentation begins in ten minutes|the client is waiting|we must deliver tonight|"
        "the audit is tomorrow|time is running out|the report is due|the board meets shortly|no time to lose",
        workaround="i can live with it|there is a detour|we manage somehow|i use another way meanwhile|"
        "no big drama|i found a trick around it|we do it by hand for now|it is bearable",
    ),
    "tone": _values(
        one="i am furious|absolutely terrible|the worst ever|a complete disaster|i hate it|utter garbage|disgusting|"
        "never again in my life|it is an insult|a total rip off|horrendous|i want to scream",
        two="quite disappointing|not what i hoped for|rather poor|i expected better|it let me down|mediocre at most|"
        "i regret it somewhat|it is a bit of a letdown|fairly weak|i was not impressed|below average|meh and then some",
        three="it is okay|so so|neither here nor there|average i suppose|it does the job|nothing special|"
        "acceptable|i have no strong opinion|fair enough|middle of the road|it is passable|as expected",
        four="pretty good|i quite like it|a decent choice|better than i thought|rather pleased|nice work|"
        "i enjoy it|it makes me smile|solid and pleasant|happy with it|well done|a good one",
        five="i adore it|simply outstanding|the best ever|i am thrilled|absolutely perfect|a dream come true|"
        "i could not be happier|phenomenal|love it to bits|brilliant beyond words|flawless|a masterpiece",
    ),
    "person": _values(
        mother="for my mum|on behalf of the woman who raised me|as mama asked|my mommy wants it|for mom|"
        "it is a present to my old lady|mum will use it|because mama insists",
        father="for my dad|papa asked me|as daddy wants|it belongs to my old man|dad will use it|for pa|"
        "my pops insists|my parent he is seventy",
        child="for my son|for our little daughter|the kids want it|my toddler will use it|for the baby|"
        "my teenage girl asked|our boy insists|the youngest needs it",
        partner="for my wife|for my husband|my fiancee wants it|my other half asked|for my girlfriend|"
        "my spouse insists|my boyfriend will use it|we as a couple",
        boss="for my manager|the director wants it|my supervisor asked|the ceo insists|for the head of department|"
        "my superior needs it|the chief will use it|it comes from the top",
        friend="for a buddy|my best mate wants it|a pal of mine asked|for someone i know from school|"
        "my roommate insists|my companion needs it|for an old chum|my bestie will use it",
        neighbour="for the people next door|the lady from upstairs asked|the family across the street wants it|"
        "for the man downstairs|the folks over the fence need it|the tenant beside us insists|"
        "someone on my block|the guy from the flat opposite",
        grandparents="for granny|for grandpa|my nana wants it|our eldest relatives need it|gramps asked|"
        "grandmother insists|my granddad will use it|for the old folks at ninety",
        pet="for my dog|the cat needs it|our hamster will use it|for the puppy|my parrot is the reason|"
        "the kitten wants it|for our rabbit|my terrier insists",
        guest="for our visitors|somebody is staying with us|we have company over|for people who drop by|"
        "the couch surfer needs it|my airbnb lodgers asked|those we invited want it|for callers at the house",
        teacher="for my professor|the instructor asked|our tutor wants it|for the lecturer|my coach insists|"
        "the schoolmaster needs it|the trainer will use it|the headmistress told me",
        myself="for me alone|i need it personally|nobody else will use it|just for my own use|it is my private one|"
        "i want it on my own account|only i am concerned|it is mine",
    ),
    "place": _values(
        kitchen="next to the sink|beside the stove|where i cook|by the pantry|on the worktop|over the cupboards",
        bathroom="near the shower|by the bathtub|next to the toilet|over the washbasin|where i brush my teeth|"
        "beside the towel rail",
        garden="on the lawn|by the flower beds|out in the yard|among the roses|under the apple tree|behind the hedge",
        bedroom="where i sleep|beside my pillow|next to the wardrobe|near the nightstand|in the master suite|"
        "at the foot of the cot",
        office="at my desk|in the cubicle|in the meeting room|at headquarters|by the photocopiers|"
        "in our open plan floor",
        seaside="at the beach|by the ocean|on the coast|at the harbour|in the dunes|on the island",
        mountains="up in the alps|on the summit|by the glacier|at the ski hut|high on the ridge|in the rocky valley",
        station="on the platform|at the railway stop|in the terminal|by track four|at the ticket gates|"
        "where the trains leave",
        school="in the classroom|on campus|at the university|in the lecture hall|at the kindergarten|in the schoolyard",
        farm="in the barn|next to the cows|by the tractor shed|out in the wheat field|near the chicken coop|"
        "at the stables",
        city="downtown|in the shopping street|on the boulevard|among the skyscrapers|at the town square|"
        "by the cathedral",
        cellar="in the basement|down below the stairs|underground|next to the wine racks|in the vault|"
        "beneath the house",
    ),
    "channel": _values(
        call="please ring me|dial my number|give me a buzz|phone me up|talk to me on the line|leave a voicemail",
        email="write to my inbox|drop me a line at gmail|send it to my mail address|put me in cc|reply electronically|"
        "attach it as a pdf to the message",
        letter="send it on paper|by post please|put it in an envelope|with a stamp on it|to my postbox|"
        "in writing with a signature",
        text="send me an sms|message me on whatsapp|ping me on the mobile|a short chat note will do|use telegram|"
        "drop me a dm",
        visit="come to my house|i will drop in at your branch|let us meet face to face|at your counter|"
        "send someone round|i want to speak in person",
        video="let us zoom|over skype|on facetime|with the webcam on|in a teams meeting|so that we see one another",
        app="notify me in the program|as a push notice|show it on my dashboard|in my online profile|"
        "under my account page|in the portal",
        nothing="do not contact me|no reply needed|leave me in peace|i want no answer|keep quiet about it|"
        "spare me any feedback",
        lawyer="through my attorney|my solicitor deals with you|write to my legal counsel|via the court|"
        "my advocate will hear from you|talk to my law firm",
        assistant="tell my secretary|through my pa|my personal aide takes it|leave it with reception|"
        "my clerk will note it|let the front desk know",
    ),
    "meal": _values(
        fish="with grilled salmon|some tuna|a plate of shrimps|fried cod|oysters and crab|herring in vinegar",
        meat="with a juicy steak|roast beef|pork chops|a rack of lamb|sausages and bacon|chicken wings",
        dessert="with chocolate cake|ice cream|apple pie|a bowl of pudding|sweet pancakes|a box of pralines",
        soup="with a hot broth|minestrone|a creamy chowder|a bowl of ramen|goulash from the pot|cold gazpacho",
        salad="with fresh lettuce|tomatoes and cucumber|rocket and radish|coleslaw|raw greens with dressing|"
        "a bowl of leaves",
        pasta="with spaghetti|lasagne|a heap of noodles|ravioli|penne in sauce|gnocchi",
        bread="with warm rolls|a baguette|sourdough|toast and butter|bagels|rye loaf",
        cheese="with brie|some gouda|mozzarella|a parmesan wedge|goat's feta|camembert",
        fruit="with bananas|strawberries|a basket of oranges|grapes and pears|mango cubes|ripe cherries",
        wine="with a bottle of merlot|red from bordeaux|a glass of riesling|chilled prosecco|burgundy|some chardonnay",
        coffee="with an espresso|cappuccino|a double latte|freshly ground beans|a mug of arabica|mocha",
        vegan="without anything animal|tofu only|plant based please|no milk no eggs|lentils and chickpeas|seitan",
    ),
    "weather": _values(
        rain="it is pouring|there are showers|i got soaked outside|it drizzles|bring an umbrella|puddles everywhere",
        snow="flakes are falling|everything is white outside|we are building an igloo|the plough is out|"
        "sledges are everywhere|a blizzard rages",
        heat="it is boiling outside|thirty eight degrees|we are sweating|the asphalt melts|it is scorching|"
        "a tropical day",
        wind="it blows hard|a gale is coming|gusts shake the trees|hats fly off|a hurricane approaches|breezy as ever",
        fog="i cannot see ten metres|it is misty|a haze hangs over us|everything is grey and thick|"
        "the view is nil|like in a cloud",
        storm="it thunders|lightning struck|there was a flash and a bang|a tempest is raging|dark clouds rumble|"
        "hail is hammering",
        frost="the roads are icy|it is below zero|my fingers are numb with cold|icicles hang down|the pond is frozen|"
        "black ice everywhere",
        sun="there is not a cloud|blue sky all over|it is bright and clear|perfect for tanning|i need my shades|"
        "glorious rays",
        drought="not a drop for weeks|the soil is cracked|the rivers are dry|the grass is brown|water is rationed|"
        "the reservoirs are empty",
        flood="the streets are under water|the river burst its banks|sandbags are out|the cellar is full to the top|"
        "boats in the road|the dam broke",
    ),
    "payment": _values(
        card="by visa|with my mastercard|i tap the plastic|charge my amex|contactless|with the pin",
        cash="in notes and coins|with banknotes|i have bills in my wallet|a pile of change|money in hand|"
        "in small dollars",
        invoice="on account|bill me later|thirty days net|send the statement first|i pay upon receipt|"
        "put it on the tab",
        instalments="in twelve rates|bit by bit|spread over the year|a little every month|on finance|in six slices",
        voucher="with a gift coupon|i have a promo code|using my loyalty points|with the rebate slip|"
        "a discount token|i redeem my bonus",
        transfer="by wire|from my iban|bank to bank|by standing order|through sepa|by direct debit",
        crypto="in bitcoin|with ethereum|from my blockchain wallet|in digital tokens|with dogecoin|on the ledger",
        cheque="i write it on a signed slip|from my chequebook|a draft payable to you|made out to bearer|"
        "a banker's draft|signed and dated on paper",
        barter="in exchange for eggs|i swap it for work|i give you firewood|a deal in kind|without any money|"
        "you get my old one for it",
        insurance="my policy covers it|the insurer pays|file it as a claim|under my coverage|"
        "the underwriter takes it|no excess applies",
    ),
    "occasion": _values(
        birthday="i turn forty|with candles to blow out|another year older|the party for my sixtieth|"
        "she becomes eighteen|the big five o",
        wedding="we tie the knot|the bride is nervous|for the marriage|walking down the aisle|the honeymoon follows|"
        "at the altar",
        funeral="somebody passed away|we mourn|at the burial|for the grave|after the loss of my aunt|"
        "the coffin is chosen",
        exam="i have finals|my test is coming|i study for the bar|the grades depend on it|for the thesis defence|"
        "i sit my a levels",
        interview="i apply for a job|they want to hire me|the recruiter expects me|with my cv in hand|"
        "for the new position|i hope to be employed",
        moving="we change house|our new flat is ready|the boxes are packed|the removal van comes|"
        "we leave town for good|the keys get handed over",
        match="our team plays|for the football final|the derby is on|the world cup kicks off|i run a marathon|"
        "the tournament starts",
        newborn="we have a baby|the stork came|for the christening|we need nappies now|i am on parental leave|"
        "the crib is ready",
        retirement="i stop working for good|my pension starts|after forty years of service|the gold watch is due|"
        "a quiet life from now on|leaving the workforce",
        concert="the band is on stage|for the gig|we go to the opera|the orchestra tunes up|the festival begins|"
        "the singer tours here",
        election="i go to the polls|we vote|the campaign is on|for the ballot|the candidate speaks|"
        "a referendum is held",
        vacation="we go on holiday|my leave starts|off to the sun|our suitcases are ready|the cruise departs|"
        "two weeks of doing nothing",
    ),
}

DOMAINS: Mapping[str, Domain] = {
    "banking": Domain(
        "action",
        _split(
            "my savings account|the joint account|my credit line|the mortgage|the standing order|my debit card|"
            "the overdraft|my loan"
        ),
        _split("says the banking app|at your branch|i am a client since years|the teller knows|iban ends in nine"),
    ),
    "smarthome": Domain(
        "object",
        _split("the hub|the bridge|the scene|the routine|the sensor|the smart plug"),
        _split("hey assistant|via the home hub|as a routine|with the motion sensor|on voice command"),
    ),
    "travel": Domain(
        "time",
        _split(
            "the flight|our hotel room|the tour|the rail pass|a window seat|the rental|the ferry ticket|the city break"
        ),
        _split("with hand luggage|two adults one child|via frankfurt|passport is valid|economy class"),
    ),
    "shop": Domain(
        "problem",
        _split("my parcel|the jacket|the toy set|the backpack|the garden chair|the lamp shade|my delivery|the mug"),
        _split("order number 4471|from your web shop|i have the receipt|says the courier|from the sale"),
    ),
    "health": Domain(
        "body",
        _split("an appointment|my referral|the prescription|the check up|the lab result|my vaccination|the sick note"),
        _split("dear doctor|says the nurse|i am at your practice|my insurance card is new|i take pills already"),
    ),
    "helpdesk": Domain(
        "impact",
        _split("the vpn|outlook|the shared drive|my login|the intranet|the ticket system|the software update|excel"),
        _split("ticket still open|on windows|i restarted twice|admin rights missing|see the log"),
    ),
    "reviews": Domain(
        "tone",
        _split("this blender|the perfume|the film|this restaurant|the game|the album|this hotel|the tent"),
        _split("my honest review|bought it here|used it for a month|verified buyer|as seen in the advert"),
    ),
    "care": Domain(
        "person",
        _split("a helper|the meal service|the ride|the nursing bed|the care plan|the walker|a visit"),
        _split("says the care team|level two|the form is signed|as in the plan|the agency knows"),
    ),
    "rental": Domain(
        "place",
        _split("the lease|the deposit|the viewing|the smoke detector|the caretaker|the rent|the wall paint"),
        _split("dear landlord|as your tenant|the contract says so|second floor left|utilities included"),
    ),
    "office": Domain(
        "channel",
        _split("the minutes|the contract|my application|the file|the draft|the certificate|the agenda"),
        _split("kind regards|reference 88|as discussed|for the record|see the attachment"),
    ),
    "catering": Domain(
        "meal",
        _split("the buffet|a table|the menu|the takeaway|our lunch box|the picnic|the banquet"),
        _split("for ten people|dear chef|no nuts please|the waiter knows|served on plates"),
    ),
    "outdoors": Domain(
        "weather",
        _split("the hike|the tent pitch|the trail map|the canoe trip|the campfire|the climb|the lookout"),
        _split("says the ranger|the trail is marked|with a rucksack|base camp here|on our route"),
    ),
    "billing": Domain(
        "payment",
        _split("the electricity|the subscription|my gas contract|the water bill|the membership|the toll|the fine"),
        _split("customer number 12|see the reminder|second notice|tax included|for the period"),
    ),
    "events": Domain(
        "occasion",
        _split("the hall|the flowers|the guest list|the speech|the invitations|the photographer|the stage"),
        _split("about eighty people|dress code black|the caterer knows|doors at six|says the planner"),
    ),
}

OUTSIDERS: Mapping[str, Outsider] = {
    "poem-moods": Outsider(
        _values(
            longing="my soul sails back to thee|o distant shore|i reach for what is gone|thy shadow never nears|"
            "the empty harbour of my arms|i count the miles of moonlight|would that thou wert near|"
            "a song without its end",
            joy="the larks are drunk on light|my blood is dancing|laughter spills like gold|sing ye meadows sing|"
            "the morning kissed me twice|bells burst in every vein|o merry dappled hour|we leap as lambs",
            grief="the willow weeps for us|ash upon my tongue|no dawn shall mend this|black are the sails|"
            "i buried the word love|cold lies the hearth|the raven keeps my hours|salt is all i drink",
            wonder="what hand hath hung the stars|a grain of sand holds seas|i stand hushed before it|"
            "infinite the petal's fold|galaxies in a dewdrop|strange fire of being|o vast unspoken deep|"
            "the veil grows thin",
        ),
        _split("in the third stanza|so the verse goes|rhymed a b a b|from a sonnet|in blank verse|thus the bard"),
    ),
    "chess-talk": Outsider(
        _values(
            opening="e4 e5 knight f3|she plays the sicilian|a queen's gambit|the caro kann|develop your bishops first|"
            "he fianchettoed|a scotch on move three|the french advance",
            tactic="a fork on c7|the rook is pinned|a discovered check|he sacrificed for mate|"
            "a skewer wins the exchange|"
            "deflect the defender|zwischenzug|a double attack",
            endgame="king and pawn only|opposition decides|the passed pawn runs|lucena position|rook behind the pawn|"
            "bishops of opposite squares|triangulate|philidor holds the draw",
            clock_trouble="his flag fell|ten seconds left|blitzing moves out|she lost on time|increment saved him|"
            "a bullet scramble|thinking forty minutes|zeitnot at move thirty",
        ),
        _split("says the engine|plus one point three|the arbiter nodded|board two|rated 1900|a grandmaster norm"),
    ),
    "animal-sounds": Outsider(
        _values(
            dog="woof woof|arf|it barks at the mailman|a growl then a yap|howling along|bow wow",
            cow="moo|a long low bellow|lowing in the meadow|muuuh|it moos for its calf|deep mooing",
            bird="tweet tweet|chirp chirp|trilling from a branch|cheep|warbling at first|cuckoo cuckoo",
            frog="ribbit|croak croak|quack like from the pond|brekekex|gribbit in the reeds|koax koax",
            horse="neigh|a soft whinny|snorting and nickering|wiehee|it whickers|hooves and a neighing",
            sheep="baa baa|bleating lambs|maaah|a woolly bleat|meh meh from the flock|baaing on the hill",
            bee="bzzz|humming round the hive|zzzz|a swarm droning|buzz buzz|sumsum in the clover",
        ),
        _split("on the recording|heard it twice|then silence|in stereo|repeated thrice|far off"),
    ),
    "star-gazing": Outsider(
        _values(
            planet="saturn and its rings|jupiter's red spot|venus at dusk|a martian polar cap|mercury in transit|"
            "uranus barely visible",
            nebula="the orion cloud|a glowing hydrogen veil|the ring in lyra|the crab remnant|"
            "dark dust of the horsehead|"
            "the eagle's pillars",
            galaxy="andromeda's core|a spiral arm|messier 51|an elliptical in virgo|the whirlpool|our milky band",
            comet="a greenish tail|halley comes|an icy nucleus|a hairy visitor|its coma brightened|perihelion passage",
            moon="the copernicus crater|mare imbrium|a waxing gibbous|the terminator line|earthshine|tycho's rays",
        ),
        _split(
            "with a dobsonian|at magnitude six|through the eyepiece|declination plus ten|seeing was steady|by parallax"
        ),
    ),
    "knitting-circle": Outsider(
        _values(
            yarn="merino four ply|a skein of mohair|alpaca blend|sock wool|hand dyed hank|superwash worsted",
            stitch="knit two purl two|stockinette|garter rows|a cable twist|moss pattern|slip one psso",
            mistake="i dropped one|frogged six rows|a hole in the ribbing|miscounted the raglan|it came out lopsided|"
            "tangled the skein",
            needles="bamboo circulars|size seven dpns|interchangeable tips|a crochet hook|steel straights|"
            "ergonomic shafts",
        ),
        _split("gauge is twenty two|row forty|from ravelry|cast on ninety|blocked overnight|for a cowl"),
    ),
    "grammar-class": Outsider(
        _values(
            verb="it conjugates|past participle of swim|a gerund|the subjunctive|an infinitive with to|"
            "irregular preterite",
            noun="takes an article|a plural in s|the genitive apostrophe|countable or not|declension two|a collective",
            adjective="comparative with er|superlative most|placed before what it modifies|attributive use|"
            "gradable with very|ends in ful",
            pronoun="whom or who|reflexive itself|possessive theirs|relative which|third person singular they|"
            "it as dummy",
            comma="oxford before and|splice of clauses|after an introductory phrase|non restrictive relative|"
            "between coordinate items|parenthetical pair",
        ),
        _split("unit three|on the blackboard|says the style guide|homework page nine|underline it|in latin likewise"),
    ),
    "pottery-wheel": Outsider(
        _values(
            clay="stoneware grog|porcelain slip|wedge the lump|terracotta body|leather hard|earthenware lump",
            glaze="celadon dip|tenmoku runs|oxide wash|crackle finish|shino crawl|ash matte",
            kiln="cone ten reduction|bisque load|raku pull|pyrometer reads|cooling slowly shelf|wood stoked",
            throwing="centre it|pull the walls|a wobbling cylinder|trim the foot|collar the neck|open the well",
        ),
        _split("for the vase|in the studio|batch nine|with a sponge|a rib tool|next firing"),
    ),
    "sailing-log": Outsider(
        _values(
            course="bearing two seven zero|tacked to port|heading for the buoy|rounded the cape|gybed downwind|"
            "set waypoint four",
            rigging="halyard jammed|reefed the mainsail|jib furled|shackle replaced|spinnaker hoisted|winch greased",
            sighting="dolphins off the bow|tanker to starboard|lighthouse abeam|a whale spouted|gannets diving|"
            "trawler lights astern",
            crew="skipper rests below|bosun on watch|deckhand seasick|helmsman relieved|cook made stew|"
            "mate took the wheel",
            anchorage="hook down in six fathoms|moored to a pontoon|swinging in the bay|berthed at the marina|"
            "chain let out|lay in the lee",
        ),
        _split("log reads forty|knots five|barometer steady|swell from astern|wrote the mate|on day nine"),
    ),
}
OUTSIDER_TARGET = "sailing-log"

FRAMES = _split(
    "can you {}|i would like to {}|please {}|{}|we need to {}|is it possible to {}|help me {}|how do i {}|"
    "i am trying to {}|why can nobody {}|could somebody {}|who will {}"
)
BARE_FRAMES = _split(
    "it is about {}|regarding {}|a word on {}|i am writing about {}|{}|concerning {}|this is for {}|look at {}"
)
GREETINGS = _split("hello|hi there|good day|hey|dear team|excuse me|morning all|ok so|well|listen")
FILLERS = _split("please|thanks|you know|i guess|um|kind of|actually|by the way|to be honest|if i may|er|basically|lol")
