package runtimes

import (
	"bufio"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestTheHeapIsReadInTheFormOfEachCollector(t *testing.T) {
	for text, want := range map[string][2]float64{ // committed and used, in KiB
		" garbage-first heap   total 301056K, used 127864K [0x00000000e7000000, 0x0000000100000000)\n  region size 1024K, 5 young (5120K), 0 survivors (0K)\n Metaspace       used 2015K, committed 2176K, reserved 1114112K\n  class space    used 201K, committed 320K, reserved 1048576K\n": {301056, 127864},
		"Shenandoah Heap\n 400M max, 219M soft max, 277M committed, 124M used\n 1600 x 256K regions\n":                                                               {277 << 10, 124 << 10},
		"Shenandoah Heap\n 400M max, 32768K soft max, 137M committed, 101907K used\n":                                                                                {137 << 10, 101907},
		" ZHeap           used 132M, capacity 206M, max capacity 400M\n Metaspace       used 2032K, committed 2240K, reserved 1114112K\n":                            {206 << 10, 132 << 10},
		" PSYoungGen      total 27648K, used 1302K [0x0, 0x1)\n  eden space 23552K, 5% used [0x0,0x1,0x2)\n ParOldGen       total 136704K, used 97682K [0x0, 0x1)\n": {164352, 98984},
	} {
		committed, used, err := parseHeap(text)
		if err != nil || committed != want[0]*1024 || used != want[1]*1024 {
			t.Errorf("%q: %v, %v, %v", text, committed/1024, used/1024, err)
		}
	}
	for _, text := range []string{"", "total", "total K", "used 5M, capacity 4M", "total 99999999999999G, used 1K", "heap is fine"} {
		if _, _, err := parseHeap(text); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestACollectorThatIgnoresTheSoftMaximumIsKnown(t *testing.T) {
	flags := "size_t MaxHeapSize = 400 {product}\nsize_t MinHeapSize = 8 {product}\n size_t SoftMaxHeapSize = 300 {manageable}\n"
	for more, want := range map[string]bool{
		"bool UseG1GC = true {product}": false, "bool UseShenandoahGC = true {product}": true, "bool UseZGC = true {product}\nbool ZUncommit = true {product}\nuintx ZUncommitDelay = 300 {product}": true,
		"bool UseZGC = true {product}\nbool ZUncommit = false {product}": false, "bool UseShenandoahGC = true {product}\nbool ShenandoahUncommit = false {experimental}": false,
	} {
		h, err := heapOf(parseFlags(flags + more))
		if err != nil || h.obeys != want || h.soft != 300 || h.most != 400 || h.least != 8 {
			t.Errorf("%q: %+v, %v", more, h, err)
		}
	}
	if _, err := heapOf(parseFlags("size_t MaxHeapSize = 400 {product}")); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("an old JVM: %v", err)
	}
	if _, err := heapOf(parseFlags("size_t SoftMaxHeapSize = x {product}")); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("nonsense: %v", err)
	}
}

func TestAnAnswerOfAJVMIsANumberAndText(t *testing.T) {
	if text, err := parseAnswer("0\nall\nof it\n"); err != nil || text != "all\nof it\n" {
		t.Errorf("%q, %v", text, err)
	}
	for answer, want := range map[string]error{"": trimtab.ErrInvalid, "x": trimtab.ErrInvalid, "\n": trimtab.ErrInvalid, "<html>\n": trimtab.ErrInvalid,
		"101\nProtocol mismatch": trimtab.ErrRefused, strings.Repeat("0", maxAnswer+1): trimtab.ErrInvalid} {
		if _, err := parseAnswer(answer); !errors.Is(err, want) {
			t.Errorf("%.40q: %v", answer, err)
		}
	}
}

func TestOnlyAProcessThatHandlesTheSignalIsSentIt(t *testing.T) {
	s, err := parseStatus("Name:\tjava\nUid:\t1\t1000\t1\t1\nNSpid:\t4711\t7\nSigCgt:\t0000000181005ccf\nRssAnon:\t   100 kB\n")
	if err != nil || s.uid != 1000 || s.inner != 7 || s.caught != 0x181005ccf || s.anon != 102400 {
		t.Errorf("%+v, %v", s, err)
	}
	p, err := processOf(1)
	if err == nil {
		err = p.wake(t.Context(), status{inner: 1}, "/tmp/.none")
	}
	if !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("a process that would end: %v", err)
	}
}

func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{"$5\r\nhello\r\n", "*2\r\n$1\r\na\r\n:5\r\n", "+OK\r\n", "-ERR no\r\n", "*-1\r\n", "$-1\r\n", "*9999999\r\n",
		`{"pid":1,"limit":5,"held":4,"live":9}`, `{"shared":1e9,"work":[4096,65536],"own":["","64MB"]}`,
		"400M max, 219M soft max, 277M committed, 124M used", "Uid:\t0\t0\nNSpid:\t5\n", "0\nfine", "size_t SoftMaxHeapSize = 5 {manageable}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = readAnswer(bufio.NewReader(strings.NewReader(text)))
		_, _ = parseAnswer(text)
		_, _ = parseStatus(text)
		_, _ = heapOf(parseFlags(text))
		if s, err := parseGo([]byte(text)); err == nil && (s.Held <= 0 || s.Live > s.Held || s.Limit <= 0) {
			t.Errorf("%+v", s)
		}
		if s, err := parseRedis("maxmemory\n5", text); err == nil && !(s.Held >= s.Least) {
			t.Errorf("%+v", s)
		}
		if s, err := parsePostgres(text); err == nil {
			for _, own := range s.Own {
				if strings.ContainsAny(own, "'\\;") {
					t.Errorf("%q", own)
				}
			}
		}
		if committed, used, err := parseHeap(text); err == nil && (!(committed > 0) || math.IsInf(committed, 0) || used > committed) {
			t.Errorf("%v, %v", committed, used)
		}
	})
}
