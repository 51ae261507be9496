package rose

// Published is what the paper's tables and text state of one row, by the names that
// figures have in JSON; in the units of [Figures].
type Published map[string]float64

// published are the rows of tables 3 to 6. Makespans of the batch-only runs are of 7.4:
// 517.4 s of ROSE, 30.11% less than RB, and SLB and QLB 10.56% and 17.72% less than RB.
func published() map[string]map[string]Published {
	return map[string]map[string]Published{
		Yarns: {
			"YARN-n": {"cpu": .213, "makespan_s": 609},
			"YARN-o": {"cpu": .386, "makespan_s": 587, "rejected": 169, "started": 58},
			"YARN-r": {"cpu": .594, "makespan_s": 481, "rejected": 0, "started": 493},
		},
		BatchOnly: {
			"none": {"cpu": .3637},
			"RB":   {"median_load": 9.739, "median_memory_gb": 10.040, "median_disk": .32727, "co_running": 344, "evicted": 532, "started": 85411, "makespan_s": 740.3},
			"SLB":  {"median_load": 10.704, "median_memory_gb": 9.610, "median_disk": .33870, "co_running": 392, "evicted": 556, "started": 111915, "makespan_s": 662.1},
			"QLB":  {"median_load": 9.263, "median_memory_gb": 7.294, "median_disk": .31814, "co_running": 275, "evicted": 680, "started": 81982, "makespan_s": 609.1},
			"ROSE": {"cpu": .6510, "median_load": 13.902, "median_memory_gb": 10.457, "median_disk": .50956, "co_running": 668, "evicted": 591, "started": 117676, "makespan_s": 517.4},
		},
		Beside: {
			"RB-UP":   table6(44.20, 33.32, 302, 9.45, 10.27, 31.79, 1128.7, 402, 64060),
			"RB-RP":   table6(38.52, 25.93, 263, 8.12, 8.21, 24.41, 1329.2, 498, 57232),
			"SLB-UP":  table6(47.23, 32.19, 321, 10.11, 8.69, 31.91, 1013.43, 429, 77152),
			"SLB-RP":  table6(39.53, 25.82, 268, 8.43, 7.19, 24.97, 1186.1, 521, 60378),
			"QLB-UP":  table6(44.12, 30.17, 260, 9.42, 7.19, 28.49, 909.65, 489, 61489),
			"QLB-RP":  table6(38.66, 24.98, 231, 8.21, 6.02, 23.6, 1081.39, 561, 54393),
			"ROSE-UP": with(table6(63.02, 53.21, 521, 15.93, 10.92, 49.13, 791.02, 453, 79494), Published{"p95": 2.58, "eps": .790, "throughput": .09}),
			"ROSE-RP": with(table6(56.34, 43.49, 451, 13.31, 9.21, 40.59, 922.27, 534, 64995), Published{"p95": 1.054, "eps": .960, "throughput": .872}),
		},
		Submissions: {
			"2000/10": table1(857, 856, 72, 215), "2000/15": table1(804, 890, 79, 227), "2000/20": table1(248, 1440, 79, 234),
			"2000/50": table1(24, 1664, 78, 237), "2000/70": table1(20, 1685, 75, 253),
			"5000/10": table1(4087, 260, 72, 215), "5000/15": table1(4111, 283, 79, 227), "5000/20": table1(760, 3653, 61, 456),
			"5000/50": table1(9, 4398, 51, 510), "5000/70": table1(8, 4410, 58, 453),
		},
	}
}

func table1(unqueued, rescheduled, killed, succeeded float64) Published {
	return Published{"rejected": unqueued, "rescheduled": rescheduled, "evicted": killed, "started": succeeded}
}

func table6(cpu, disk, running, load, memory, median, makespan, evicted, started float64) Published {
	return Published{"cpu": cpu / 100, "disk": disk / 100, "co_running": running, "median_load": load, "median_memory_gb": memory,
		"median_disk": median / 100, "makespan_s": makespan, "evicted": evicted, "started": started}
}

func with(p, more Published) Published {
	for k, v := range more {
		p[k] = v
	}
	return p
}

// Paper returns what the paper states of a row; nil: nothing.
func Paper(part, name string) Published { return published()[part][name] }
