"""What RobustTC-FSL is compared with: from the shots alone, from all tasks at once, and what others install today.

    single_task   the target's shots and nothing else: baseline (2) of the paper, TF-IDF, frozen vectors
    multi_task    one model of the whole bank: baselines (3) and (6), and TF-IDF over all texts
    peers         a pre-trained sentence encoder and SetFit, on MiniLM or an encoder of ours, where the extra `peers` is
                  installed

Baselines (1), (4) and (5) are in `manymetrics.evaluation.baselines`, as the package's demonstration shows them too. A
method is a function from a task to an answer for each of its test texts. It sees the shots and the texts; whoever calls
it strikes the test labels out first (`manymetrics.evaluation.targets.blind`).
"""
