package draining

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/policies/drain"
)

const (
	// silence is the longest that somebody waits without a word, and often how long what is waited for has to differ
	// from what was said of that until it is said once more.
	silence = 2 * time.Second
	often   = 10 * time.Second
)

// awaits says what is waited for where nothing else has been said for a while: a terminal shows it all the time. next is
// the time until the next look.
func (w *Watch) awaits(text string, next time.Duration) error {
	longest := silence
	if w.awaited != "" {
		longest = often
	}
	now := w.Clock.Now()
	if text == "" || text == w.awaited || now.Sub(w.spoke)+next < longest || printers.IsTerminal(w.ErrOut) {
		return nil
	}
	w.spoke, w.awaited = now, text
	_, err := fmt.Fprintln(w.ErrOut, text)
	return err
}

// awaited is "waiting for 2 of 5: Deployment shop/db: the old copy goes; …"; empty where nothing is on its way.
func awaited(rows []drain.Row) string {
	var parts []string
	waiting := 0
	for i := range rows {
		row := &rows[i]
		if row.State != drain.Waits && row.State != drain.Leaves {
			continue
		}
		if waiting++; waiting <= shown {
			parts = append(parts, row.Title()+": "+cmp.Or(row.Why, "nothing is decided about it yet"))
		}
	}
	if waiting == 0 {
		return ""
	}
	text := fmt.Sprintf("waiting for %d of %d: %s", waiting, len(rows), strings.Join(parts, "; "))
	if more := waiting - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Late says on out what takes so long, unless it is over within a moment. The function that it returns ends that.
func Late(out io.Writer, c clock.Clock) (over func()) {
	ended, written, timer := make(chan struct{}), make(chan struct{}), c.NewTimer(silence)
	go func() {
		defer close(written)
		select {
		case <-timer.C():
			_, _ = fmt.Fprintf(out, "reading what runs where, and the nodes of clusters: one that does not answer is given %s\n", readTimeout)
		case <-ended:
			timer.Stop()
		}
	}()
	return func() {
		close(ended)
		<-written
	}
}
