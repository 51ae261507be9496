package site

import "github.com/trimtab/trimtab"

// lineBudget bounds the last lines of tasks that run in one report, in bytes: reports of
// thousands of hosts pass through one bus. Those that have ended tell theirs whatever
// they take.
const lineBudget = 8 << 10

// lines adds the last lines of running tasks that printed since theirs were told, in
// turn as far as there is room: who looks on keeps what was told.
func (h *taskHost) lines(m *trimtab.Machine) {
	room := lineBudget
	seen := map[trimtab.AttemptID]int64{}
	h.lineTurn++
	for i := range m.Attempts {
		a := &m.Attempts[(i+h.lineTurn)%len(m.Attempts)]
		if a.State != trimtab.AttemptRunning && a.State != trimtab.AttemptFrozen {
			continue
		}
		told, last := h.printed[a.AttemptID], h.infos[a.AttemptID].LastLines
		size := 0
		for _, l := range last {
			size += len(l) + 3
		}
		if a.Output > told && size <= room {
			a.LastLines, told, room = last, a.Output, room-size
		}
		seen[a.AttemptID] = told
	}
	h.printed = seen
}
