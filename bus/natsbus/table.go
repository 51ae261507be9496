package natsbus

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
	"github.com/trimtab/trimtab/topic"
)

// unreadableSubject is the prefix of the subjects of dead letters: trimtab.unreadable.<kind>.
const unreadableSubject = "trimtab.unreadable."

// StreamInfo is one row of the table of streams and buckets.
type StreamInfo struct {
	// Name is the stream, or the bucket when Bucket is set; empty for kinds
	// that are not stored.
	Name   string
	Bucket bool
	// Kind is the kind of the stored values; empty for buckets and for UNREADABLE.
	Kind     trimtab.Kind
	Delivery topic.Delivery
	Subjects string
	// PerSubject is how many messages are kept per subject; 0: no bound.
	PerSubject int64
	// MaxBytes and MaxAge limit the stored messages; the oldest are deleted first; 0: no limit.
	MaxBytes int64
	MaxAge   time.Duration
	// AckWait, MaxDeliver and Unreadable are settings of the consumers.
	AckWait    time.Duration
	MaxDeliver int
	Unreadable string
	// Publish and Read are the roles that may publish and read.
	Publish, Read []Role
	// Note says what the row is for.
	Note string
}

// others stands for any bucket without a row of its own.
const others = "(others)"

const mib = 1 << 20

// packedBytes is the MaxBytes of a large stream of a bus that is [Config.alone]. Its data are
// compressed, by 3 to 8, so that it keeps as much. From 32 MiB on the server would use blocks of
// 8 MiB in place of 4, and it keeps the newest block of each stream in memory.
const packedBytes = 31 * mib

// lockBytes is the MaxBytes of a bucket of locks of a bus that is [Config.alone]:
// it has a few of some hundred bytes, which are renewed every few seconds. Up to
// 125 KiB the server writes blocks of 32 kB, and has no more of them in memory.
const lockBytes = 64 << 10

// Table returns all kinds, streams and buckets, with the limits for a [Config] of a bus that other
// processes can reach.
func Table() []StreamInfo { return tableOf(Config{URL: "any"}.withDefaults()) }

func tableOf(c Config) []StreamInfo {
	stored := map[trimtab.Kind]StreamInfo{
		trimtab.KindAlert:    {Name: "ALERTS", MaxBytes: 32 * mib, MaxAge: 24 * time.Hour},
		trimtab.KindEstimate: {Name: "ESTIMATES", MaxBytes: 128 * mib, PerSubject: 1},
		trimtab.KindPlan:     {Name: "PLANS", MaxBytes: 128 * mib, MaxAge: 7 * 24 * time.Hour},
		trimtab.KindPart:     {Name: "PARTS", MaxBytes: 32 * mib, PerSubject: 1, MaxAge: time.Hour},
		trimtab.KindOutcome:  {Name: "OUTCOMES", MaxBytes: 128 * mib, MaxAge: 7 * 24 * time.Hour},
		trimtab.KindHolding:  {Name: "HOLDINGS", MaxBytes: 32 * mib, PerSubject: 1},
		trimtab.KindCommand:  {Name: "COMMANDS", MaxBytes: 8 * mib, MaxAge: time.Hour},

		speculation.KindJobRequest: {Name: "JOBREQUESTS", MaxBytes: 32 * mib, MaxAge: time.Hour},
		speculation.KindJobState:   {Name: "JOBSTATES", MaxBytes: 32 * mib, PerSubject: 1, MaxAge: 7 * 24 * time.Hour},
	}
	var rows []StreamInfo
	for _, k := range topic.All() {
		if k.Delivery == topic.Local {
			continue
		}
		row := stored[k.Kind]
		row.Kind, row.Delivery = k.Kind, k.Delivery
		row.Subjects = "trimtab." + string(k.Kind) + ".*"
		row.Note = k.From + " → " + k.To + ", by " + k.KeyIs
		if row.Name != "" {
			row.AckWait, row.MaxDeliver = c.AckWait, c.MaxDeliver
			row.Unreadable = unreadableSubject + string(k.Kind)
		}
		rows = append(rows, row)
	}
	locks := int64(1 * mib)
	if c.alone() {
		for i := range rows {
			rows[i].MaxBytes = min(rows[i].MaxBytes, packedBytes)
		}
		locks = lockBytes
	}
	rows = append(rows,
		StreamInfo{Name: "UNREADABLE", Delivery: topic.Durable, Subjects: unreadableSubject + "*",
			MaxBytes: 32 * mib, MaxAge: 7 * 24 * time.Hour, Note: "dead letters, with the reason in the header " + headerReason},
		StreamInfo{Name: bucketLeaders, Bucket: true, PerSubject: 1, MaxBytes: locks, Note: "the lock of each pool's planner, with its epoch"},
		StreamInfo{Name: BucketAnalyzers, Bucket: true, PerSubject: 1, MaxBytes: locks, Note: "the locks of what one analyzer at a time does"},
		StreamInfo{Name: BucketCollectors, Bucket: true, PerSubject: 1, MaxBytes: locks, Note: "the lock of who asks Prometheus"},
		StreamInfo{Name: BucketSnapshots, Bucket: true, PerSubject: 1, MaxBytes: 256 * mib, Note: "what was learnt, over a restart"},
		StreamInfo{Name: BucketPlanner, Bucket: true, PerSubject: 1, MaxBytes: 16 * mib, Note: "what a planner knows beside it, over a restart"},
		StreamInfo{Name: BucketJobs, Bucket: true, PerSubject: 1, MaxBytes: 64 * mib, Note: "the jobs of speculative tasks, before anything of them is told"},
		StreamInfo{Name: BucketMachines, Bucket: true, PerSubject: 1, MaxBytes: 16 * mib, Note: "the lists of machines over which candidates are told"},
		StreamInfo{Name: BucketThresholds, Bucket: true, PerSubject: 1, MaxBytes: 16 * mib, Note: "limits of services that the co-location controller of a host found, and what else it learned, by pool and host"},
		StreamInfo{Name: others, Bucket: true, PerSubject: 1, MaxBytes: 16 * mib, Note: "any other bucket"},
	)
	for i, r := range rows {
		may := whoMay(r)
		rows[i].Publish, rows[i].Read = may.publish, may.read
		if n, ok := c.Limits[r.Name]; ok && n > 0 {
			rows[i].MaxBytes = n
		}
	}
	return rows
}
