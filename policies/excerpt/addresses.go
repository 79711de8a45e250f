package excerpt

import (
	"regexp"
	"strings"
)

const (
	// opening is what comes between the scheme of an address and the rest.
	opening = "://"
	// hidden stands for the rest of an address of which it is not known where its credentials end.
	hidden = "…"

	// mostRead is how many bytes of a text are read, more than a condition or an Event can hold, and mostAddresses how many
	// addresses: members choose both.
	mostRead      = 64 << 10
	mostAddresses = 100
)

// host is what an address begins with where no credentials are in it, or an end of it that was cut off.
var host = regexp.MustCompile(`^(\[[^\[\]@]*\]|[^:@\[\]]*)(:[0-9]*)?$`)

// WithoutCredentials returns text with no more of its addresses, such as https://bob:secret@host/path?token=secret, than
// their scheme, host and path. Text that is too long to be read, or has too many of them, is cut.
func WithoutCredentials(text string) string {
	read := readable(text)
	cut := len(read) < len(text)
	text = read
	// From the last to the first: the path or the query of one may have another one in it.
	for at := strings.LastIndex(text, opening); at >= 0; at = strings.LastIndex(text[:at], opening) {
		from := at + len(opening)
		end := endOfAddress(text[:at], text[from:])
		switch to := from + end; {
		case cut && strings.Trim(text[to:], trailing) == "":
			text = text[:from] // where its credentials end is not known
		case end > 0:
			text = text[:from] + bare(text[from:to]) + text[to:]
		}
	}
	if cut {
		text += hidden
	}
	return text
}

// readable returns as much of a text as is read.
func readable(text string) string {
	text = text[:min(len(text), mostRead)]
	for at, seen := 0, 0; ; seen++ {
		next := strings.Index(text[at:], opening)
		if next < 0 {
			return text
		}
		if at += next + len(opening); seen == mostAddresses {
			return text[:at]
		}
	}
}

// trailing are the marks that end a sentence and not an address that stands before them.
const trailing = `:;,.)]}'\`

// endOfAddress returns where in the text after its opening an address ends: with the quotation mark that it began with, at a
// space or a mark that is in none, or, unless that is all of it, at the punctuation before those.
func endOfAddress(before, after string) int {
	before = strings.TrimRightFunc(before, ofScheme)
	if mark := before[max(0, len(before)-1):]; mark != "" && strings.Contains("\"'`", mark) {
		return closing(after, mark, backslashes(before[:len(before)-1]))
	}
	end := strings.IndexFunc(after, func(r rune) bool { return strings.ContainsRune(" \t\r\n\v\f\"<>`", r) })
	if end < 0 {
		end = len(after)
	}
	return len(strings.TrimRight(after[:end], trailing))
}

func ofScheme(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("+-.", r)
}

// closing returns where the quotation ends that began with a mark after so many backslashes; with the text where it does not.
func closing(text, mark string, escapes int) int {
	for at := 0; ; {
		next := strings.Index(text[at:], mark)
		if next < 0 {
			return len(text)
		}
		if at += next; backslashes(text[:at]) <= escapes {
			return at - min(escapes, backslashes(text[:at]))
		}
		at += len(mark)
	}
}

// backslashes returns how many a text ends with.
func backslashes(text string) int { return len(text) - len(strings.TrimRight(text, `\`)) }

// bare returns the rest of an address without credentials: its host and path.
func bare(address string) string {
	path, _, asked := strings.Cut(strings.ReplaceAll(address, "#", "?"), "?")
	if asked {
		path = strings.TrimRight(path, `\`) // it would hide the mark that follows
	}
	authority, rest, slash := strings.Cut(path, "/")
	authority = authority[strings.LastIndex(authority, "@")+1:]
	if slash {
		rest = "/" + rest
	}
	if host.MatchString(authority) {
		return authority + rest
	}
	// A password may have what an address has elsewhere, and it may have been cut off.
	at := strings.LastIndex(rest, "@")
	if asked || at < 0 {
		return hidden
	}
	return bare(rest[at+1:])
}
