package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab/internal/pause"
)

func TestAPauseEndsAfterItsTimeOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !pause.For(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("it took %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if pause.For(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("with a context that ended it took %v", time.Since(began))
		}
	})
}
