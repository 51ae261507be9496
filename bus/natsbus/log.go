package natsbus

import (
	"fmt"
	"log/slog"
	"sync"
)

// serverLog hands what the embedded server says to slog, one level quieter,
// and keeps the fatal error: a library must not end the process.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal error
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(l.text(format, v)) }
func (l *serverLog) Warnf(format string, v ...any)   { l.log.Warn(l.text(format, v)) }
func (l *serverLog) Errorf(format string, v ...any)  { l.log.Error(l.text(format, v)) }
func (l *serverLog) Debugf(string, ...any)           {}
func (l *serverLog) Tracef(string, ...any)           {}

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
