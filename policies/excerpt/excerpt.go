// Package excerpt makes foreign texts fit for a field, an Event, a line or a terminal.
//
// In go texts of any content and length; out come valid ones that are no longer than they
// may be, cut between characters, and that show that they were cut. Message, Visible, Inline and
// Line leave nothing in them that a terminal would obey or that nobody would see. Message, as WithoutCredentials,
// leaves no credentials in addresses.
package excerpt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis shows that a text goes on.
const ellipsis = "…"

// Bytes returns text, cut to at most n bytes, mark included, where it is longer. What is no
// valid UTF-8 becomes question marks: stores refuse it.
func Bytes(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, n-len(ellipsis))], "") + ellipsis
}

// Runes returns text, cut to at most n characters, mark included, where it is longer. Space
// before the mark goes.
func Runes(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return strings.TrimRight(string(runes[:max(0, n-1)]), " ") + ellipsis
}

// RunesTo is Runes for a text that says from the last place of a word on what to do: where it is cut, that follows the
// mark, if it takes no more than two fifths of n characters, and is left out otherwise rather than cut.
func RunesTo(text, from string, n int) string {
	at := strings.LastIndex(text, from)
	if at < 0 || utf8.RuneCountInString(text) <= n {
		return Runes(text, n)
	}
	end := utf8.RuneCountInString(text[at:])
	if before := utf8.RuneCountInString(text[:at]); end > n*2/5 && before > 0 {
		return Runes(text, min(n, before))
	}
	if end > n*2/5 {
		return Runes(text, n)
	}
	return Runes(text[:at], n-end-1) + " " + text[at:]
}

// Message returns text as the message of a condition or an Event holds it, which more people read than may see what it
// was said of: WithoutCredentials, Visible, and cut as by Bytes.
func Message(text string, n int) string { return Bytes(Visible(WithoutCredentials(text)), n) }

// Visible returns text with the codes of characters that a terminal would obey, or that
// nobody would see, in their place: \u0007 for a bell. Ends of lines and tabs stay.
func Visible(text string) string {
	return coded(text, func(r rune) bool { return r != '\n' && r != '\t' && unseen(r) })
}

// Inline is Visible for what must stay in one line: the codes of ends of lines and tabs are
// in their place, too.
func Inline(text string) string { return coded(text, unseen) }

// coded returns text with the codes of hidden characters in their place.
func coded(text string, hidden func(rune) bool) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if hidden(r) {
			_, _ = fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Line returns text in one line, without characters that a terminal would obey or that
// nobody would see, and with one blank where there was space.
func Line(text string) string {
	text = strings.Map(func(r rune) rune {
		if unseen(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return strings.Join(strings.Fields(text), " ")
}

// unseen reports whether r is a control or a format character, such as those that turn the
// direction of a text, or begins a line where no terminal does.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
