package artifacts

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// slow is how large an upload is of which progress is shown, in bytes.
const slow = 1 << 20

// meter shows on a terminal how much of an upload is done.
type meter struct {
	out     io.Writer // nil if it is no terminal
	percent int64
	width   int
}

func newMeter(out io.Writer) *meter {
	if !printers.IsTerminal(out) {
		out = nil
	}
	return &meter{out: out, percent: -1}
}

// show shows how much is sent.
func (m *meter) show(sent, all int64) {
	if m.out == nil || all < slow || sent*100/all == m.percent {
		return
	}
	m.percent = sent * 100 / all
	line := fmt.Sprintf("sending %s of %s", bytesOf(sent), bytesOf(all))
	_, _ = fmt.Fprintf(m.out, "\r%s%s", line, strings.Repeat(" ", max(0, m.width-len(line))))
	m.width = len(line)
}

// end erases what was shown.
func (m *meter) end() {
	if m.width > 0 {
		_, _ = fmt.Fprintf(m.out, "\r%s\r", strings.Repeat(" ", m.width))
	}
}
