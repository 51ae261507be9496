package natsbus

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/internal/cluster/clustertest"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/topic"
)

// TestMain lets more tests run side by side than there are processors: they wait for
// servers and for time-outs. -parallel says otherwise.
func TestMain(m *testing.M) {
	clustertest.Main()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	leak.Main(m)
}

// testBus adds to a Bus what the contract wants to do behind its back.
type testBus struct {
	*Bus
	t *testing.T
}

var _ bustest.Injector = testBus{}

func (b testBus) Inject(ctx context.Context, k trimtab.Kind, key string, data []byte) error {
	m := &nats.Msg{Subject: bus.Subject(k, key), Data: data}
	switch b.kinds[k].Delivery {
	case topic.Shed:
		return b.conn.PublishMsg(m)
	case topic.Answered:
		return b.ask(ctx, m)
	}
	_, err := b.js.PublishMsg(ctx, m)
	return err
}

func (b testBus) Aside(k trimtab.Kind) [][]byte {
	s, err := b.js.Stream(b.t.Context(), "UNREADABLE")
	if err != nil {
		b.t.Fatal(err)
	}
	info, err := s.Info(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var all [][]byte
	for n := info.State.FirstSeq; n <= info.State.LastSeq && info.State.Msgs > 0; n++ {
		if m, err := s.GetMsg(b.t.Context(), n); err == nil && m.Subject == unreadableSubject+string(k) {
			all = append(all, m.Data)
		}
	}
	return all
}

func open(t *testing.T, c Config) testBus {
	t.Helper()
	if c.Dir == "" && c.URL == "" {
		c.Dir = t.TempDir()
	}
	c.Source, c.MaxDeliver, c.Pause = or(c.Source, "test"), 4, 5*time.Millisecond
	c.PendingBytes = or(c.PendingBytes, 1<<20)
	b, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return testBus{b, t}
}

// patient is how long the server waits for a consumer in the tests of the
// contract, which count deliveries: on a busy machine one may be silent for the
// 2 s of the default, and its value comes again. It is less than the patience of
// the contract, for what is lost with a subscriber comes then.
const patient = 20 * time.Second

func TestEmbeddedKeepsTheContract(t *testing.T) {
	t.Parallel()
	// Without the injector: a bus that nobody else reaches gets no bytes.
	bustest.Run(t, func(t *testing.T) bus.Bus { return open(t, Config{AckWait: patient}).Bus })
}
