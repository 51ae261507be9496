package bustest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/quantity"
)

// Injector is a bus on which the contract can put raw bytes, as a faulty or hostile peer could.
type Injector interface {
	// Inject sends data on the subject of kind and key.
	Inject(ctx context.Context, k trimtab.Kind, key string, data []byte) error
	// Aside returns the dead letters of kind k.
	Aside(k trimtab.Kind) [][]byte
}

// patience limits every wait of the contract; typical waits are milliseconds.
const patience = time.Minute

// contract is one test with a bus of its own.
type contract struct {
	*testing.T
	bus.Bus
}

// Run checks the contract on buses that open returns. Each call of open must return an empty bus;
// Run closes it. The bus must give up a value whose handler always fails within 20 s.
func Run(t *testing.T, open func(t *testing.T) bus.Bus) {
	for _, c := range []struct {
		sentence string
		test     func(*contract)
	}{
		{"ShedIsDeliveredOnceInOrder", shedOnce},
		{"ShedNeverBlocksAndLossIsCountedExactly", shedLoss},
		{"AnsweredReturnsAfterTheHandler", answeredAfter},
		{"AnsweredReturnsTheHandlersError", answeredError},
		{"AnsweredWithoutConsumerIsErrNoConsumer", answeredNobody},
		{"AnsweredIsSlowedDownByASlowConsumer", answeredSlow},
		{"AnsweredIsToldWhenItsConsumerStops", answeredStop},
		{"DurableIsStoredWhenPublishReturns", durableStored},
		{"DurableStartsFromNowWithoutHistory", durableFromNow},
		{"DurableComesAgainInOrderAfterAnError", durableAgain},
		{"DurableIsGivenUpAndPutAsideAtTheLimit", durableLimit},
		{"DurableGroupSharesTheWork", durableGroup},
		{"DurableGroupGoesOnWhereItStopped", durableGoesOn},
		{"DurableGroupOfOneKeyIsItsOwn", durableKeys},
		{"DurableGroupPassesOverWhatIsTooOld", durableTooOld},
		{"LatestGivesTheLastOfEachKeyFirst", latestFirst},
		{"QueuesTellWhatWaitsAndWhatWasPutAside", queuesTell},
		{"UnreadableNeverReachesAHandler", unreadable},
		{"AnOlderVersionIsReadAndCounted", olderRead},
		{"InvalidHandlingIsPutAsideAtOnce", invalidHandling},
		{"InvalidIsRefusedBeforeSending", invalidRefused},
		{"KeysMayBeAnyText", anyKey},
		{"HandlerRunsOnOneGoroutineAtATime", oneAtATime},
		{"StopWaitsForTheHandlerAndLeavesTheRest", stopLeaves},
		{"OriginIsUnique", originUnique},
		{"ConcurrentPublishersLoseNothing", concurrent},
		{"BucketComparesAndSwaps", bucketSwaps},
		{"BucketSwapHasOneWinner", bucketWinner},
		{"BucketKeysMayBeAnyText", bucketKeys},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			b := open(t)
			defer func() { _ = b.Close() }() // closed twice where the sentence closes
			c.test(&contract{T: t, Bus: b})
		})
	}
	t.Run("CloseEndsEverything", func(t *testing.T) { closeEnds(t, open) })
}

// must ends the test on an error.
func (c *contract) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// publish publishes or ends the test.
func (c *contract) publish(values ...trimtab.Value) {
	c.Helper()
	for _, v := range values {
		c.must(c.Publish(c.Context(), v))
	}
}

// subscribe subscribes or ends the test.
func (c *contract) subscribe(s bus.Subscription) (stop func()) {
	c.Helper()
	stop, err := c.Subscribe(c.Context(), s)
	c.must(err)
	return stop
}

// eventually waits until cond returns true.
func (c *contract) eventually(what string, cond func() bool) {
	c.Helper()
	eventually(c.T, what, cond)
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-deadline:
			t.Fatalf("still not after %v: %s", patience, what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// inbox collects the values that a handler received.
type inbox struct {
	mu   sync.Mutex
	got  []string
	seen []bus.Delivery
}

// handle is a handler that records the names of values.
func (i *inbox) handle(_ context.Context, d bus.Delivery) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, nameOf(d.Value))
	i.seen = append(i.seen, d)
	return nil
}

func (i *inbox) names() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.Join(i.got, " ")
}

func (i *inbox) len() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.got)
}

func (i *inbox) deliveries() []bus.Delivery {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]bus.Delivery(nil), i.seen...)
}

// nameOf returns the text by which the functions below name a value.
func nameOf(v trimtab.Value) string {
	switch v := v.(type) {
	case *trimtab.Alert:
		return v.Name
	case *trimtab.Estimate:
		return v.Model
	case *trimtab.Sample:
		return v.Source
	case *trimtab.SpanFrame:
		return fmt.Sprint(v.Partition)
	}
	return "?"
}

// now is the time in every value: the contract does not read it.
func now() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func alert(workload, name string) *trimtab.Alert {
	return &trimtab.Alert{Workload: workload, Name: name, Time: now()}
}

func estimate(workload, model string) *trimtab.Estimate {
	return &trimtab.Estimate{Workload: workload, Model: model, Time: now()}
}

func sample(workload, source string) *trimtab.Sample {
	return &trimtab.Sample{Workload: workload, Source: source, Quantity: quantity.Load, Time: now(), Value: 1}
}

func frame(partition int) *trimtab.SpanFrame {
	var w codec.FrameWriter
	r, _ := w.AddResource([]trimtab.Attr{{Key: "service.name", Value: "checkout"}})
	w.Add(&trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{byte(partition)}, Start: 1, End: 2, Adjusted: 1, Resource: r})
	return w.Frame(partition)
}

// closeEnds checks that Close leaves nothing running.
func closeEnds(t *testing.T, open func(t *testing.T) bus.Bus) {
	b := open(t)
	c := &contract{T: t, Bus: b}
	c.must(b.Close()) // whatever is made once is made now
	before := runtime.NumGoroutine()
	b = open(t)
	c.Bus = b
	var in inbox
	for _, k := range []trimtab.Kind{trimtab.KindSample, trimtab.KindSpans, trimtab.KindAlert, trimtab.KindEstimate} {
		c.subscribe(bus.Subscription{Kind: k, Handle: in.handle})
		c.subscribe(bus.Subscription{Kind: k, Consumer: "group", Handle: in.handle})
	}
	c.publish(sample("w", "1"), frame(1), alert("w", "1"), estimate("w", "1"))
	c.must(b.Close())
	c.must(b.Close())
	n := in.len()
	if err := b.Publish(t.Context(), alert("w", "2")); err == nil {
		t.Error("Publish on a closed bus returned nil")
	}
	if _, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Handle: in.handle}); err == nil {
		t.Error("Subscribe on a closed bus returned nil")
	}
	eventually(t, "goroutines of a closed bus end", func() bool { return runtime.NumGoroutine() <= before })
	if in.len() != n {
		t.Error("a handler ran after Close")
	}
}
