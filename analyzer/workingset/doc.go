// Package workingset learns how much memory one instance of a workload needs, from readings of its
// working set (usage without the inactive part of the page cache):
//
//	base_w = highest reading of the last w,           w in 1 h, 6 h, 24 h, 8 days
//	over_w = largest excess of a reading over the base_w before it, in the last 8 days
//	need   = min over w of base_w + over_w
//
// The bound is an order statistic: if hours are exchangeable, the highest reading of the next hour
// exceeds base_w + over_w with a probability of at most 1/(n+1) after n hours, whatever the
// distribution. During the first day the need is higher by 15% of base_w: any hour of the day
// that the learner has not seen yet may be the highest.
//
// base_w forgets readings older than w, over_w those older than 8 days. So a peak that comes every
// day costs little, because the base of 24 h contains it; a peak that came once raises the need for 8
// days. A reading that is not later than the one before it is ignored.
//
// The first ten minutes of a process do not count in base_w and over_w. Their highest reading of the
// last 8 days is a peak of its own, and while a process starts the need is at least that peak. If the
// kernel kills a process for lack of memory, the need is for one day at least 1.2 times the limit at
// the kill, plus the largest rise seen within a minute, and the kill counts as a use of all of that limit.
//
// The working set leaves out page cache that the kernel holds for inactive, which a service may still
// read again and again. If a group is full to its limit, and reads so many pages again within a minute
// that all of the limit would be read again within five, its need is for one day at least 1.05 times the limit,
// up to the highest limit that it had: so a limit that was lowered too far rises again, and a program that
// reads more files than fit gets no more than its operator gave it. A day later the limit may come down
// again, and shows whether that has changed.
//
// [Learner.Growth] reports growth that does not stop. Of the last six complete periods of 1, 3, 10, 30 or
// 90 minutes it takes the lowest use: each is above every use that is older than four times these
// periods, in the last 8 days, and together they rise by 5% or more, not by a single step. If periods are
// exchangeable, six lows in a row are above n earlier ones with a probability of 1/C(n+6, 6): 2·10^-6
// with a day of hours. Use is not exchangeable, so the rate of false reports is measured: trimtab-lab sim
// memory. While a growth is reported, the need is not learnt, and what a process used since it began is
// forgotten when the next one starts ([Learner.Leak]).
//
// Source: the order statistic is conformal prediction (Vovk et al., Algorithmic Learning in a
// Random World, 2005) with a maximum as its quantile; the choice among windows by what they would
// have cost is Autopilot's idea (Rzadca et al., EuroSys'20), and the bound is ours.
//
// Five minutes are the rule of J. Gray and F. Putzolu (SIGMOD'87): a page that is read again within that
// time is worth its memory.
//
// The package reads no clock. It does not know limits, and changes nothing.
package workingset
