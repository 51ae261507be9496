package natsbus

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// another is a way to a NATS server on which it says that it has another version.
func another(t *testing.T, address, version string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	own := regexp.MustCompile(`"version":"[^"]*"`)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", address)
			if err != nil {
				client.Close()
				return
			}
			go func() { _, _ = io.Copy(s, client); s.Close() }()
			go func() {
				defer client.Close()
				from := bufio.NewReader(s)
				for { // a server tells of itself again whenever something changes
					line, err := from.ReadBytes('\n')
					if bytes.HasPrefix(line, []byte("INFO ")) {
						line = own.ReplaceAll(line, []byte(`"version":"`+version+`"`))
					}
					if _, failed := client.Write(line); err != nil || failed != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestANATSServerOfAnotherVersionIsNamed(t *testing.T) {
	s := open(t, Config{Source: "server", Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	way, address, _ := strings.Cut(s.URL(), "://")
	user := ""
	if at := strings.LastIndex(address, "@"); at >= 0 {
		user, address = address[:at+1], address[at+1:]
	}
	for version, named := range map[string]bool{"2.2.6": true, "3.0.0": true, server.VERSION: false, releaseOf(server.VERSION) + ".99-beta": false} {
		var log bytes.Buffer
		b := open(t, Config{Source: "client", URL: way + "://" + user + another(t, address, version), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if b.Untested() != named {
			t.Errorf("server %s: untested %v, want %v", version, b.Untested(), named)
		}
		b.Close() // so that nobody writes any more
		if got := strings.Contains(log.String(), "another release"); got != named || got && !strings.Contains(log.String(), version) {
			t.Errorf("server %s: %s", version, log.String())
		}
	}
}
