package natsbus

import (
	"bufio"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// slowServer is a NATS server that answers nothing once a subscription is given
// up, so that its last messages would come late.
func slowServer(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := c.Write([]byte(`INFO {"server_id":"slow","max_payload":1048576,"headers":true}` + "\r\n")); err != nil {
			return
		}
		gone := false
		for in := bufio.NewScanner(c); in.Scan(); {
			gone = gone || strings.HasPrefix(in.Text(), "UNSUB")
			if !gone && strings.HasPrefix(in.Text(), "PING") {
				if _, err := c.Write([]byte("PONG\r\n")); err != nil {
					return
				}
			}
		}
	}()
	return "nats://" + l.Addr().String()
}

func TestAPullThatIsClosedLeavesNoSubscriptionHoweverLateTheServerIs(t *testing.T) {
	conn, err := nats.Connect(slowServer(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b := &connection{conn: conn}
	for range 3 {
		p, err := b.openPull("PLANS", "planner")
		if err != nil {
			t.Fatal(err)
		}
		p.close(func(*nats.Msg) { t.Error("a message came") })
	}
	if n := conn.NumSubscriptions(); n != 0 {
		t.Errorf("%d subscriptions are left of 3 pulls", n)
	}
}

func TestASubscriberThatStopsAsksForNothingMore(t *testing.T) {
	b := open(t, Config{})
	words, err := b.Bus.conn.SubscribeSync("$JS.ACK.>")
	if err != nil {
		t.Fatal(err)
	}
	running := make(chan struct{})
	stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner", Handle: func(ctx context.Context, _ bus.Delivery) error {
		close(running)
		<-ctx.Done()
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1", "2"} {
		if err := b.Publish(t.Context(), &trimtab.Alert{Workload: "w", Name: name, Time: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	<-running
	stop()
	if m, err := words.NextMsgWithContext(t.Context()); err != nil || string(m.Data) != "+ACK" {
		t.Errorf("the stopped subscriber said %q, %v, want an acknowledgement alone", m.Data, err)
	}
}
