package rig

import (
	"bufio"
	"strings"
	"testing"
)

func TestOnlyAnIntegerIsAnAnswerOfRedis(t *testing.T) {
	for text, ok := range map[string]bool{":42\r\n": true, "-ERR no\r\n": false, ":42": false, "": false} {
		if err := integer(bufio.NewReader(strings.NewReader(text))); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
