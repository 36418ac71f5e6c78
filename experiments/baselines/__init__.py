"""What RobustTC-FSL is compared with: from the shots alone, from all tasks at once, and SetFit.

    single_task   the target's shots and nothing else: baselines (1) and (2) of the paper, TF-IDF
    multi_task    one model of all tasks: baselines (3) to (6), and TF-IDF over all texts
    setfit        SetFit on an encoder of ours, where the extra `peers` is installed

Those on a frozen encoder are in `manymetrics.evaluation.baselines` and `experiments.methods`.
"""
