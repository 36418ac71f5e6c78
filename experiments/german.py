"""The words of the targets' label names in German, for the row of `compare` whose names are in another language."""

from collections.abc import Iterable

MOST_UNKNOWN = 0.1  # share of the words of a bank's names that may stay as they are

_WORDS = """
account Konto, accounting Buchhaltung, acknowledge bestätigen, advice Ratschlag, affirm bejahen, after nach,
against gegen, and und, anger Wut, angry wütend, animosity Feindseligkeit, anxiety Angstgefühl, architecture
Baukunst, arts Künste, ask fragen, attendant Begleiter, attention Aufmerksamkeit, automobile Kraftfahrzeug,
background Hintergrund, bad schlecht, balance Kontostand, basis Grundlage, benefits Vorteile, bill Rechnung, birth
Geburt, blocked gesperrt, booking Buchung, budget Haushaltsplan, business Geschäft, calendar Kalender, cancelled
abgesagt, cardiovascular Herzkreislauf, career Laufbahn, cast Besetzung, celeb Berühmtheit, challenge
Herausforderung, change ändern, character Rolle, check prüfen, checks Schecks, choices Auswahlmöglichkeiten, choose
auswählen, civil zivil, clarify klären, commerce Handel, communication Verständigung, compare vergleichen,
competitors Mitbewerber, complaints Beschwerden, composer Komponist, computer Rechner, condition Bedingung,
conditions Zustände, confirm bestätigen, contrast Gegensatz, contribution Beitrag, count Anzahl, course Lehrgang,
courses Lehrgänge, current derzeitig, customer Kunde, customers Kunden, damaged beschädigt, date Datum, death Tod,
default Voreinstellung, deny verneinen, derogation Herabsetzung, details Einzelheiten, development Entwicklung,
dietary ernährungsbezogen, digestive Verdauung, diploma Abschluss, director Regisseur, discussions Gespräche,
diseases Krankheiten, disgust Ekel, distance Entfernung, distributor Vertrieb, due fällig, easy leicht, economics
Wirtschaftslehre, electrical elektrisch, electronics Elektronik, engineering Ingenieurwesen, entertainment
Unterhaltung, expand erweitern, explain erklären, extends erweitert, facilities Einrichtungen, faculty Lehrkörper,
favor Gunst, fear Furcht, feedback Rückmeldung, fields Fachgebiete, fine gut, flight Flug, for für, fraud Betrug,
freeze einfrieren, future Zukunft, general allgemein, genre Gattung, goodbye Wiedersehen, guilt Schuld, happy
glücklich, harm Schaden, hate Hass, history Geschichte, home Zuhause, hotel Gasthof, idea Einfall, incitement
Aufhetzung, info Auskunft, inform mitteilen, information Auskünfte, instruct anweisen, interest Zinsen, investment
Geldanlage, issue Problem, issues Probleme, it es, joy Freude, late spät, lines Zeilen, link verknüpfen, list
Liste, loan Darlehen, location Ort, long lang, lost verloren, low niedrig, luggage Gepäck, lung Lunge, mechanical
mechanisch, mechatronics Mechatronik, medical medizinisch, method Verfahren, min Mindestbetrag, money Geld,
motivation Beweggrund, movie Film, movies Filme, music Musik, name Bezeichnung, negative ablehnend, neither weder,
neoplasms Geschwülste, nervous nervlich, neutral unentschieden, next nächste, no nein, non nicht, none keine, not
nicht, notes Notizen, objective Ziel, of von, offensive beleidigend, opening Eröffnung, optimism Zuversicht, or
oder, order Bestellung, other andere, out aus, overview Übersicht, parameters Stellgrößen, pathological krankhaft,
pay bezahlen, payment Zahlung, performing darstellend, period Zeitraum, pin Geheimzahl, place Platz, plans Pläne,
play abspielen, playlist Wiedergabeliste, politics Politik, positive zustimmend, poster Plakat, potassium Kalium,
prejudiced voreingenommen, problems Schwierigkeiten, proceed fortfahren, producer Hersteller, profession Beruf,
prognosis Vorhersage, provide bereitstellen, question Frage, rain Regen, rate Satz, rating Bewertung, ready bereit,
recipe Kochrezept, relationship Beziehung, release Veröffentlichung, reminder Erinnerung, reply antworten, report
melden, request anfordern, research Forschung, result Ergebnis, rooms Zimmer, routing Bankleitzahl, runtime
Laufzeit, sad traurig, sadness Traurigkeit, sarcastic höhnisch, saving sparen, science Wissenschaft, scope Umfang,
search suchen, service Dienst, shame Scham, shopping einkaufen, skill Fertigkeit, skills Fertigkeiten, smart klug,
song Lied, spam Werbemüll, specialization Fachrichtung, speech Rede, spending Ausgaben, sport Leibesübungen, spring
Frühling, status Stand, summary Zusammenfassung, system Gefüge, tech Technik, technology Technik, tell erzählen,
temperature Wärmegrad, thank danken, thanks danke, threats Drohungen, to zu, todo Aufgaben, transactions Buchungen,
transfer überweisen, update aktualisieren, usage Verwendung, user Benutzer, uses Verwendungen, vs gegen, what was,
wind Windstärke, with mit, writer Schriftsteller, yes ja, you du
"""
WORDS: dict[str, str] = dict(pair.split() for pair in _WORDS.split(","))


def speaks(names: Iterable[str]) -> bool:
    """Whether enough of the words are known for names to be in another language."""
    words = [word for name in names for word in name.lower().split()]
    return sum(word not in WORDS for word in words) <= MOST_UNKNOWN * len(words)


def in_german(name: str) -> str:
    """A name word by word; words that are not known stay as they are."""
    return " ".join(WORDS.get(word, word) for word in name.lower().split())
