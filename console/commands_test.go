package console

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
)

func TestPauseResumeApplyAndRoundAreAnsweredWithinThreeSecondsWhenTheBusDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Handler(testView(), Options{Send: func(ctx context.Context, _ *trimtab.Command) error {
			<-ctx.Done()
			return fmt.Errorf("publish command: bus is not connected: %w", ctx.Err())
		}})
		for _, body := range []string{`{"verb":"pause"}`, `{"verb":"resume"}`, `{"verb":"apply","plan":"1-2"}`, `{"verb":"round"}`} {
			began := time.Now()
			code, answer, _ := request(t, h, "POST", "/api/v1/commands", body, "Content-Type", "application/json")
			if took := time.Since(began); code != 503 || took > 3*time.Second || !strings.Contains(answer, "bus is not connected") {
				t.Errorf("%s: %d after %v: %s", body, code, took, answer)
			}
		}
	})
}
