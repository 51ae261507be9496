// Package workingset learns how much memory one instance of a workload needs, from readings of its
// working set (usage without the inactive part of the page cache):
//
//	base_w = highest reading of the last w,           w in 1 h, 6 h, 24 h, 8 days
//	over_w = highest reading above the base_w before it, of the last 8 days
//	need   = min over w of base_w + over_w
//
// The bound is an order statistic: if hours are exchangeable, the highest reading of the next hour
// exceeds base_w + over_w with a probability of at most 1/(n+1) after n hours, whatever the
// distribution. During the first day an allowance is added that falls from 15% to 0, since
// nobody has seen the rest of the day yet.
//
// What is forgotten: each base_w all that is older than w, and over_w all that is older than 8 days.
// So a peak that comes every day is covered by the base of 24 h at little cost, and one that came once
// holds the need up for 8 days. A reading that is not later than the one before is ignored.
//
// The start of a process is apart from the steady state: readings of its first ten minutes give a
// peak of their own, the highest of the last 8 days, and a process that starts needs the larger of
// both. After a kill for want of memory, the need is for a day at least the limit at which that happened
// plus what the process was seen to rise in a minute, and plus a fifth.
//
// Growth that does not stop is told by [Learner.Growth], from the minima of 24 intervals of 1, 5 or
// 30 minutes: none falls back by more than a tenth of the growth, the slope is significant, it does
// not become less, and the use is above all earlier peaks. Such a workload is never learnt.
//
// Source: the order statistic is conformal prediction (Vovk et al., Algorithmic Learning in a
// Random World, 2005) with a maximum as its quantile; the choice among windows by what they would
// have cost is Autopilot's idea (Rzadca et al., EuroSys'20, section 3.2.3), and the bound is ours.
//
// The package reads no clock. It does not know limits, and changes nothing.
package workingset
