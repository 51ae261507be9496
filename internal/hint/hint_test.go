package hint_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/trimtab/trimtab/internal/hint"
)

func TestAHintChangesNeitherTheTextNorTheCause(t *testing.T) {
	cause := errors.New("port in use")
	err := fmt.Errorf("serve: %w", hint.Add(cause, "choose another than %d", 80))
	if err.Error() != "serve: port in use" || !errors.Is(err, cause) || hint.Of(err) != "choose another than 80" {
		t.Errorf("%v, hint %q", err, hint.Of(err))
	}
}

func TestNoErrorStaysNoError(t *testing.T) {
	if hint.Add(nil, "x") != nil || hint.Of(nil) != "" || hint.Of(errors.New("x")) != "" {
		t.Error("a hint out of nothing")
	}
}
