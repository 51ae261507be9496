package natsbus

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"pgregory.net/rapid"
)

// link is a connection between clients and a server that can be made to
// swallow what clients send, or what they are answered, from one word on, and to
// hand it over later: a server that is stopped, or a network that is.
type link struct {
	t      *testing.T
	listen net.Listener
	to     string

	mu    sync.Mutex
	word  []byte // hold from here on; nil: do not
	up    bool   // of what clients send
	held  chan struct{}
	goOn  chan struct{}
	conns []net.Conn
	all   sync.WaitGroup
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{t: t, listen: l, to: to, held: make(chan struct{}), goOn: make(chan struct{})}
	k.all.Go(k.accept)
	t.Cleanup(func() {
		l.Close()
		k.mu.Lock()
		for _, c := range k.conns {
			c.Close()
		}
		k.mu.Unlock()
		k.all.Wait()
	})
	return k
}

func (k *link) accept() {
	for {
		client, err := k.listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", k.to)
		if err != nil {
			client.Close()
			continue
		}
		k.mu.Lock()
		k.conns = append(k.conns, client, server)
		k.mu.Unlock()
		k.all.Go(func() { k.copy(server, client, true) })
		k.all.Go(func() { k.copy(client, server, false) })
	}
}

func (k *link) copy(to, from net.Conn, upwards bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		k.mu.Lock()
		holds := upwards == k.up && k.word != nil && bytes.Contains(buf[:n], k.word)
		if holds {
			k.word = nil
		}
		k.mu.Unlock()
		if holds {
			close(k.held)
			<-k.goOn
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// holdFrom lets nothing pass from the word on, until the returned function is
// called.
func (k *link) holdFrom(word string) (release func()) { return k.hold(word, true) }

// holdAnswers does that with what the server says.
func (k *link) holdAnswers(word string) (release func()) { return k.hold(word, false) }

func (k *link) hold(word string, up bool) (release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.word, k.up = []byte(word), up
	return sync.OnceFunc(func() { close(k.goOn) })
}

func commandBy(by string) *trimtab.Command {
	return &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: time.Now(), By: by}
}

// hears returns the names of the commands that a subscriber gets.
func hears(t *testing.T, b testBus, consumer string) <-chan string {
	t.Helper()
	got := make(chan string, 100)
	_, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindCommand, Consumer: consumer, Handle: func(_ context.Context, d bus.Delivery) error {
		got <- d.Value.(*trimtab.Command).By
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// refusedAtOnce publishes a command that must be refused within a second, which
// on a busy machine is long; what is tried again and again takes half a minute.
func refusedAtOnce(t *testing.T, b testBus, by string) {
	t.Helper()
	began := time.Now()
	err := b.Publish(t.Context(), commandBy(by))
	if took := time.Since(began); err == nil || took > 20*time.Second {
		t.Errorf("got %v after %v, want an error within a second", err, took)
	}
}

// sendUntilStored publishes a command until the bus takes it. A busy machine
// may need longer than the second after which a command is refused.
func sendUntilStored(t *testing.T, b testBus, c *trimtab.Command) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		err := b.Publish(t.Context(), c)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// next returns the first command that arrives.
func next(t *testing.T, got <-chan string) string {
	t.Helper()
	select {
	case by := <-got:
		return by
	case <-time.After(time.Minute):
		t.Fatal("no command arrives")
	}
	return ""
}

func TestPauseWhileTheBusIsDownIsRefusedAtOnceAndNeverFiresLater(t *testing.T) {
	s := serve(t, server.Options{})
	k := newLink(t, s.Addr().String())
	b := open(t, Config{URL: "nats://" + k.listen.Addr().String()})
	direct := open(t, Config{URL: "nats://" + s.Addr().String(), Source: "other"})
	got := hears(t, direct, "actuator")
	// The network goes away.
	listening := k.listen.Addr().String()
	k.listen.Close()
	k.mu.Lock()
	for _, c := range k.conns {
		c.Close()
	}
	k.mu.Unlock()
	until(t, func() bool { return b.Ready() != nil })
	refusedAtOnce(t, b, "while it was down")
	// And comes back.
	l, err := net.Listen("tcp", listening)
	if err != nil {
		t.Fatal(err)
	}
	k.listen = l
	k.all.Go(k.accept)
	t.Cleanup(func() { l.Close() })
	until(t, func() bool { return b.Ready() == nil })
	sendUntilStored(t, b, commandBy("after"))
	if by := next(t, got); by != "after" {
		t.Errorf("the command %q was carried out", by)
	}
}

func TestACommandThatAStoppedServerReadsLaterIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	k := newLink(t, s.Addr().String())
	b := open(t, Config{URL: "nats://" + k.listen.Addr().String()})
	direct := open(t, Config{URL: "nats://" + s.Addr().String(), Source: "other"})
	named, alone := hears(t, direct, "actuator"), hears(t, direct, "")
	release := k.holdFrom("PUB trimtab.command.")
	t.Cleanup(release)
	for sent := false; !sent; { // a busy machine may refuse before anything is sent
		refusedAtOnce(t, b, "late")
		select {
		case <-k.held:
			sent = true
		default:
		}
	}
	// Its sender waits a little less than the second, by as long as the question for
	// the server's clock took; the server may store until the second is over.
	time.Sleep(commandWithin)
	release()
	// It is stored now: the next one follows it on the same connection.
	sendUntilStored(t, b, commandBy("after"))
	for _, got := range []<-chan string{named, alone} {
		if by := next(t, got); by != "after" {
			t.Errorf("the command %q was carried out", by)
		}
	}
	stream, err := direct.js.Stream(t.Context(), "COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	if info := stream.CachedInfo(); info.State.Msgs < 2 {
		t.Errorf("%d commands are stored: the late one never arrived, and this test shows nothing", info.State.Msgs)
	}
}

// storedAnswer is how the answer begins that a command is stored.
const storedAnswer = `{"stream":"COMMANDS"`

// Of a command that is stored in time while its answer is late, its sender is
// told that it is stored, or where a busy machine needs still longer, that nobody
// knows: never that it failed.
func TestACommandWhoseAnswerIsLateIsNotSaidToHaveFailed(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	k := newLink(t, s.Addr().String())
	b := open(t, Config{URL: "nats://" + k.listen.Addr().String()})
	direct := open(t, Config{URL: "nats://" + s.Addr().String(), Source: "other"})
	got := hears(t, direct, "actuator")
	release := k.holdAnswers(storedAnswer)
	t.Cleanup(release)
	go func() {
		select {
		case <-k.held:
		case <-t.Context().Done():
		}
		time.Sleep(commandWithin)
		release()
	}()
	err := b.Publish(t.Context(), commandBy("answered late"))
	sendUntilStored(t, direct, commandBy("after"))
	if by := next(t, got); by == "answered late" && err != nil && !errors.Is(err, bus.ErrInDoubt) {
		t.Errorf("it was carried out, and its sender was told %v", err)
	} else if by != "answered late" && err == nil {
		t.Error("its sender was told that it is stored, and it was not carried out")
	}
}

func TestACommandThatIsNeverAnsweredIsSaidToBeInDoubt(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	k := newLink(t, s.Addr().String())
	b := open(t, Config{URL: "nats://" + k.listen.Addr().String()})
	t.Cleanup(k.holdAnswers(storedAnswer))
	for {
		err := b.Publish(t.Context(), commandBy("never answered"))
		select {
		case <-k.held:
			if !errors.Is(err, bus.ErrInDoubt) {
				t.Errorf("its sender was told %v", err)
			}
			return
		default: // a busy machine refused before anything was sent
			if err == nil || errors.Is(err, bus.ErrInDoubt) {
				t.Fatalf("nothing was sent, and its sender was told %v", err)
			}
		}
	}
}

func TestACommandIsCarriedOutWhateverTheClocksOfTheHostsSay(t *testing.T) {
	b := open(t, Config{})
	got := hears(t, b, "actuator")
	c := commandBy("ahead")
	c.Time = c.Time.Add(-time.Hour) // the console's clock is an hour behind the server's
	sendUntilStored(t, b, c)
	if by := next(t, got); by != "ahead" {
		t.Error(by)
	}
}

// TestACommandThatIsAnsweredInTimeIsNotDropped: whenever between the question
// and its answer the server read its clock, a command whose sender was told that
// it is stored is carried out, and one that is stored after the sender gave up
// is not.
func TestACommandThatIsAnsweredInTimeIsNotDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		after := func(name string, from time.Time) time.Time {
			return from.Add(time.Duration(rapid.Int64Range(0, int64(commandWithin)).Draw(t, name)))
		}
		began := time.Unix(1000, 0)
		deadline := began.Add(commandWithin)
		asked := after("asked", began)
		read := after("read", asked)
		told := after("told", read)
		stored := after("stored", told)
		answered := after("answered", stored)
		// The clocks of the two hosts differ.
		skew := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "skew"))
		until, answer := storeBy(read.Add(skew), asked, told, deadline)
		h := nats.Header{headerUntil: {strconv.FormatInt(until.UnixNano(), 10)}}
		dropped := tooLate(h, stored.Add(skew))
		if dropped && !answered.After(answer) {
			t.Errorf("its sender is told after %v that it is stored, and it is dropped", answered.Sub(began))
		}
		if !dropped && stored.After(deadline) {
			t.Errorf("it is stored after %v and carried out", stored.Sub(began))
		}
	})
}
