package gate

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// service serves each connection with f until f returns false, and counts the connections.
func service(t *testing.T, f func(n int64, r *bufio.Reader, c net.Conn) bool) (url string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	connections = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := connections.Add(1)
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); f(n, r, c); {
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), connections
}

// head reads the head of a request and returns it, empty at the end of the connection.
func head(r *bufio.Reader) string {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return ""
		}
		if b.WriteString(line); line == "\r\n" {
			return b.String()
		}
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// exchange sends a request on a connection of its own and returns everything that comes back. The
// request has to end the connection.
func exchange(t *testing.T, address, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(c)
	return string(b)
}

// manyHeaders returns so many headers, the last one first.
func manyHeaders(n int) (text string) {
	for n > 0 {
		n--
		text += fmt.Sprintf("X-%02d: %d\r\n", n, n)
	}
	return text
}

func TestThePathsPassTheSame(t *testing.T) {
	requests := map[string]string{
		"plain":              "GET /a%2fb?c=%zz;d HTTP/1.1\r\nHost: shop.example\r\n",
		"of a browser":       "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: x/1\r\nAccept: */*\r\nCookie: a=b\r\nCookie: c=d\r\n",
		"hop by hop":         "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-One, close\r\nX-One: 1\r\nX-Two: 2\r\nKeep-Alive: 5\r\nProxy-Authorization: b\r\nProxy-Connection: keep-alive\r\nTe: trailers, deflate\r\n",
		"behind proxies":     "GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=1\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nX-Forwarded-Host: shop\r\nX-Forwarded-Proto: https\r\n",
		"names them as hops": "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Forwarded-For, Forwarded\r\nForwarded: for=1\r\nX-Forwarded-For: 192.0.2.1\r\n",
		"agent as a hop":     "GET / HTTP/1.1\r\nHost: a\r\nConnection: user-agent, close\r\nUser-Agent: x/1\r\n",
		"empty agent":        "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent:\r\n",
		"no length":          "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX-Empty:\r\n",
		"a zone":             "GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]:80\r\n",
		"strange host":       "GET / HTTP/1.1\r\nHost: a,b;c\r\n",
		"beyond ASCII":       "GET /\u00e4?\u00e4 HTTP/1.1\r\nHost: a\r\nX-A: \u00e4\r\n",
		"many":               "GET / HTTP/1.1\r\nHost: a\r\n" + manyHeaders(40),
		"head":               "HEAD / HTTP/1.1\r\nHost: a\r\n",
		"options":            "OPTIONS * HTTP/1.1\r\nHost: a\r\n",
		"old":                "GET / HTTP/1.0\r\n",
		"absolute":           "GET http://b.example/c?d HTTP/1.1\r\nHost: a\r\n",
	}
	responses := map[string]string{
		"length":         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nX-A: 2\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nDate: x\r\n\r\nok",
		"chunks":         "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\nDate: x\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"trailers":       "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\nDate: x\r\n\r\n2\r\nok\r\n0\r\nSum: 1\r\n\r\n",
		"other trailers": "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\nDate: x\r\n\r\n2\r\nok\r\n0\r\nSum: 1\r\n\r\n",
		"until close":    "HTTP/1.0 200 OK\r\nContent-Type: a/b\r\nDate: x\r\n\r\nok",
		"hop by hop":     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close, X-One\r\nX-One: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: b\r\nDate: x\r\n\r\n",
		"no content":     "HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n",
		"not modified":   "HTTP/1.1 304 Not Modified\r\nEtag: \"a\"\r\nDate: x\r\n\r\n",
		"early hints":    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nDate: x\r\n\r\nno",
		"unasked switch": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"nonsense":       "SSH-2.0-x\r\n\r\n",
		"two lengths":    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
		"cut":            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: x\r\n\r\nok",
		"huge":           "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 12<<20) + "\r\n\r\n",
	}
	answer := ""
	var saw atomic.Value
	url, _ := service(t, func(_ int64, r *bufio.Reader, c net.Conn) bool {
		text := head(r)
		if text != "" {
			saw.Store(text)
			_, _ = io.WriteString(c, answer)
		}
		return false
	})
	library, g := openTo(t, url, nil), openTo(t, url, nil)
	library.transport.direct = nil
	for _, g := range []*Gate{library, g} {
		g.start(t)
	}
	dates := regexp.MustCompile("(?m)^Date: .* GMT\r$")
	play := func(g *Gate, request string) (seen, got string) {
		request = strings.Replace(request, "\r\nHost: a\r\n", "\r\nHost: a\r\nConnection: close\r\n", 1)
		if !strings.Contains(request, "close") {
			request += "Connection: close\r\n"
		}
		saw.Store("")
		// The service answers HEAD with a body, which http.Transport might take for the next response.
		g.transport.http1.CloseIdleConnections()
		got = exchange(t, g.Address(), request+"\r\n")
		return saw.Load().(string), dates.ReplaceAllString(got, "")
	}
	compare := func(name, request string) {
		t.Helper()
		seen, got := play(library, request)
		seen2, got2 := play(g, request)
		if seen != seen2 || got != got2 {
			t.Errorf("%s: the service sees\n%s\nover the library's proxy and\n%s\ndirectly; the client gets\n%s\nand\n%s", name, seen, seen2, got, got2)
		}
	}
	answer = responses["length"]
	for name, request := range requests {
		compare(name, request)
	}
	for name, text := range responses {
		answer = text
		compare("response: "+name, requests["plain"])
		compare("response to HEAD: "+name, requests["head"])
	}
}

func TestARequestIsSentAgainWhenTheServiceClosesAnIdleConnection(t *testing.T) {
	var asked atomic.Int64
	url, connections := service(t, func(n int64, r *bufio.Reader, c net.Conn) bool {
		if head(r) == "" {
			return false
		}
		asked.Add(1)
		if n == 1 && asked.Load() == 2 {
			return false // at the moment in which the second request comes
		}
		_, err := io.WriteString(c, ok)
		return err == nil
	})
	g, _ := runTo(t, url, nil)
	for range 3 {
		if resp, body := get(t, g.url("/")); resp.StatusCode != http.StatusOK || body != "ok" {
			t.Fatal(resp.Status, body)
		}
	}
	if asked.Load() != 4 || connections.Load() != 2 {
		t.Errorf("asked %d times over %d connections", asked.Load(), connections.Load())
	}
}

func TestWhatMustNotBeSentTwiceIsNotCarriedDirectly(t *testing.T) {
	for method, want := range map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true, "POST": false, "DELETE": false, "PUT": false, "CONNECT": false, "get": false} {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://a/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&direct{}).carries(r); got != want {
			t.Errorf("%s: %v", method, got)
		}
	}
	body, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/", bytes.NewReader([]byte("x")))
	upgrade, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/", nil)
	upgrade.Header.Set("Upgrade", "websocket")
	if d := (&direct{}); d.carries(body) || d.carries(upgrade) {
		t.Error("a body or an upgrade")
	}
}

func TestAResponseThatNobodyAskedForIsNotTakenForTheNext(t *testing.T) {
	sent := make(chan struct{}, 2)
	url, connections := service(t, func(n int64, r *bufio.Reader, c net.Conn) bool {
		if head(r) == "" {
			return false
		}
		_, _ = io.WriteString(c, ok)
		if n == 1 {
			time.Sleep(20 * time.Millisecond) // so that it comes after the response was read
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		}
		sent <- struct{}{}
		return true
	})
	g, _ := runTo(t, url, nil)
	for range 2 {
		if _, body := get(t, g.url("/")); body != "ok" {
			t.Fatal(body)
		}
		<-sent
	}
	if connections.Load() != 2 {
		t.Errorf("%d connections", connections.Load())
	}
}

func TestAClientThatLeavesEndsItsRequestAtTheService(t *testing.T) {
	came, ended := make(chan struct{}), make(chan struct{})
	url, _ := service(t, func(_ int64, r *bufio.Reader, _ net.Conn) bool {
		if head(r) == "" {
			return false
		}
		close(came)
		_, _ = r.ReadByte() // until the gate closes the connection
		close(ended)
		return false
	})
	g, _ := runTo(t, url, nil)
	c := send(t, g, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-came
	_ = c.Close()
	<-ended
	await(t, g, "abandoned", func(d Document) bool { return d.InFlight == 0 })
}

func TestIdleConnectionsToTheServiceAreReusedAndClosedBeforeTheServiceDoes(t *testing.T) {
	url, connections := service(t, func(_ int64, r *bufio.Reader, c net.Conn) bool {
		if head(r) == "" {
			return false
		}
		_, err := fmt.Fprint(c, ok)
		return err == nil
	})
	g, _ := runTo(t, url, nil)
	for range 5 {
		get(t, g.url("/"))
	}
	d := g.transport.direct
	d.mu.Lock()
	n := len(d.idle)
	d.mu.Unlock()
	if connections.Load() != 1 || n != 1 {
		t.Errorf("%d connections, %d idle", connections.Load(), n)
	}
	d.sweep(time.Now().Add(upstreamIdle + time.Second))
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.idle) != 0 {
		t.Errorf("%d idle", len(d.idle))
	}
}
