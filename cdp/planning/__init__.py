"""What a run of any size takes, before it starts: numbers in, numbers out. The one owner of this arithmetic and of the
rates that come with the program; studies, the test on one's own data and Launch compute their times by it too."""
