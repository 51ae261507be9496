package natsbus

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// serverLog passes the embedded server's log to slog, one level quieter, and keeps the fatal
// error: a library must not end the process.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal error
	// corrupt is the first log line about a stream whose description is damaged: the server
	// continues without it, and a new stream would be created over its files.
	corrupt error
	// unstored is why the last message could not be stored, and at when: the publisher only sees
	// that no answer comes.
	unstored error
	at       time.Time
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(l.text(format, v)) }
func (l *serverLog) Debugf(string, ...any)           {}
func (l *serverLog) Tracef(string, ...any)           {}

func (l *serverLog) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...) // the format may be no more than %s
	l.log.Error("embedded nats-server: " + text)
	if strings.Contains(text, "failed to store a msg") {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.unstored, l.at = errors.New(text), time.Now()
	}
}

// storing returns why a message could not be stored since t, or nil.
func (l *serverLog) storing(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unstored == nil || l.at.Before(t) {
		return nil
	}
	return l.unstored
}

func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn(l.text(format, v))
	// "Missing stream metafile" is only a server that was killed at its start.
	if strings.Contains(format, "tream metafile") && !strings.Contains(format, "Missing") {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.corrupt = fmt.Errorf("%s", strings.TrimSpace(fmt.Sprintf(format, v...)))
	}
}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == nil {
		l.fatal = fmt.Errorf("%s", fmt.Sprintf(format, v...))
	}
}

func (l *serverLog) text(format string, v []any) string {
	return "embedded nats-server: " + fmt.Sprintf(format, v...)
}

// died returns the fatal error, or nil.
func (l *serverLog) died() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

// unusable returns why the server should not go on, or nil.
func (l *serverLog) unusable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.fatal, l.corrupt)
}
