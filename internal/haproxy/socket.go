package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// patience is the time limit for one connection, from its start to the last byte of the answer.
	patience = 2 * time.Second
	// MaxAnswer is the longest answer that is read, in bytes. A row of "show stat" has about 400
	// bytes, so 20,000 servers fit.
	MaxAnswer = 8 << 20
)

// MaxSocketPath is the longest path of a Unix socket that the kernel accepts, in bytes.
const MaxSocketPath = 107

// Dialed returns the network and the address of a socket: an absolute path, or HOST:PORT.
func Dialed(socket string) (network, address string, err error) {
	if filepath.IsAbs(socket) && len(socket) <= MaxSocketPath && !strings.ContainsAny(socket, "\x00\n") {
		return "unix", socket, nil
	}
	host, port, err := net.SplitHostPort(socket)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
		return "", "", trimtab.Invalidf("socket %.120q of HAProxy: want an absolute path of at most %d bytes, or HOST:PORT", socket, MaxSocketPath)
	}
	return "tcp", socket, nil
}

// Ask sends commands in one line and returns their answers as one text. HAProxy closes the
// connection after the last answer.
func Ask(ctx context.Context, socket string, commands ...string) (string, error) {
	network, address, err := Dialed(socket)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return "", fmt.Errorf("ask HAProxy: %w%s", err, remedy(err))
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	_, err = io.WriteString(c, strings.Join(commands, ";")+"\n")
	var b []byte
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(c, MaxAnswer+1))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return "", fmt.Errorf("ask HAProxy at %s: no whole answer: %w", socket, ctx.Err())
	case err != nil:
		return "", fmt.Errorf("ask HAProxy at %s: %w", socket, err)
	case len(b) > MaxAnswer:
		return "", fmt.Errorf("ask HAProxy at %s: an answer of more than %d bytes: %w", socket, MaxAnswer, trimtab.ErrRefused)
	}
	return string(b), nil
}

// remedy returns a hint for the operator on how to repair a failed connection.
func remedy(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ": start HAProxy, or name the path of its line `stats socket PATH level admin`"
	case errors.Is(err, syscall.ECONNREFUSED):
		return ": nobody listens there: start HAProxy, or name the socket of its line `stats socket`"
	case errors.Is(err, os.ErrPermission):
		return ": give trimtab's group the socket: `stats socket PATH mode 660 group GROUP level admin`"
	}
	return ""
}
