// Package sources lists the sources of samples that this program has. Another source is
// another line of [All]; configuration, metrics and the table in CONTRIBUTING follow from
// the value.
package sources

import (
	"github.com/trimtab/trimtab/collector/dcgm"
	"github.com/trimtab/trimtab/collector/link"
	"github.com/trimtab/trimtab/collector/memory"
	"github.com/trimtab/trimtab/collector/perf"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/psi"
	"github.com/trimtab/trimtab/collector/rapl"
	"github.com/trimtab/trimtab/collector/resctrl"
)

// All are the sources that are polled on a host.
func All() []poll.Source {
	return []poll.Source{
		psi.Source(),
		memory.Source(),
		resctrl.Source(),
		perf.Source(),
		rapl.Source(rapl.Reader{}),
		link.Source(""),
		dcgm.Source(),
	}
}
