package natsbus

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
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
	b := &Bus{conn: conn}
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
