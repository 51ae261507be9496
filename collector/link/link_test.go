package link_test

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trimtab/trimtab/collector/link"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/poll/polltest"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsSentIsTheBytesOverTime(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "eth0/statistics/tx_bytes", "1000\n")
	put(t, dir, "eth0/speed", "10000\n")
	before, err := link.Read(dir, "eth0")
	if err != nil || before.Bandwidth != 1.25e9 {
		t.Fatalf("%+v, %v", before, err)
	}
	put(t, dir, "eth0/statistics/tx_bytes", "5001000\n")
	after, err := link.Read(dir, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	after.At = before.At + 2*time.Second
	if v, err := link.Sent(before, after); err != nil || v != 2.5e6 {
		t.Errorf("%v bytes/s, %v", v, err)
	}
	if v, err := link.Sent(after, before); err == nil {
		t.Errorf("the other way round: %v", v)
	}
}

func TestASpeedThatIsNotToldIsMissing(t *testing.T) {
	for _, text := range []string{"", "-1\n", "0", "4294967295", "fast"} {
		if v := link.ParseSpeed(text); v != 0 {
			t.Errorf("%q is %v bytes/s", text, v)
		}
	}
	dir := t.TempDir()
	put(t, dir, "veth/statistics/tx_bytes", "7\n")
	if r, err := link.Read(dir, "veth"); err != nil || r.Bandwidth != 0 || r.Bytes != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, name := range []string{"", "..", "../veth", "none"} {
		if r, err := link.Read(dir, name); err == nil {
			t.Errorf("%q: %+v", name, r)
		}
	}
}

// What this process sends to itself passes the real loopback interface.
func TestTheLoopbackOfThisHostCounts(t *testing.T) {
	before, err := link.Read("", "lo")
	if err != nil {
		t.Skipf("not tried: %v", err)
	}
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const n = 100_000
	for sent := 0; sent < n; {
		k, err := l.WriteTo(make([]byte, 1000), l.LocalAddr())
		if err != nil {
			t.Fatal(err)
		}
		sent += k
	}
	after, err := link.Read("", "lo")
	if err != nil || after.Bytes < before.Bytes+n {
		t.Errorf("from %d to %d bytes, %v: at least %d were sent", before.Bytes, after.Bytes, err, n)
	}
}

func TestAnInterfaceThatIsGoneIsAbsent(t *testing.T) {
	got := polltest.Open(t, link.Source(t.TempDir()), poll.Config{Settings: []string{"eth0"}}).Next()
	if want := map[string]any{".host/h/eth0 sent": "absent", ".host/h/eth0 bandwidth": "absent"}; !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func FuzzASpeedIsReadTotally(f *testing.F) {
	f.Add("1000\n")
	f.Add("-1")
	f.Fuzz(func(t *testing.T, text string) {
		if v := link.ParseSpeed(text); !(v >= 0 && v <= 1e18) {
			t.Fatalf("%q is %v bytes/s", text, v)
		}
	})
}
