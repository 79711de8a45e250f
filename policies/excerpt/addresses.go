package excerpt

import (
	"regexp"
	"strings"
)

const (
	// hidden stands for the rest of an address of which it is not known where its credentials end.
	hidden = "…"

	// mostRead is how many bytes of a text are read, more than a condition or an Event can hold, and mostAddresses how many
	// addresses: members choose both.
	mostRead      = 64 << 10
	mostAddresses = 100
)

// opening is what comes between the scheme of an address and the rest; JSON may have its slashes escaped.
var opening = regexp.MustCompile(`:(\\*/|\\+u002[fF]){2}`)

// host is what an address begins with where no credentials are in it, or an end of it that was cut off. tcp(127.0.0.1:3306) is one,
// too.
var host = regexp.MustCompile(`^(\[[^\[\]@]*\]|[^:@\[\]]*|[a-z]+\([^()@]*\))(:[0-9]*)?$`)

// WithoutCredentials returns text with no more of its addresses, such as https://bob:secret@host/path?token=secret, than
// their scheme, host and path. bob:secret@host/path is one, too, if it has a path or a port. Text that is too long to be read, or has too
// many of them, is cut.
func WithoutCredentials(text string) string {
	read := readable(text)
	cut := len(read) < len(text)
	text = read
	// From the last to the first: the path or the query of one may have another one in it.
	found := opening.FindAllStringIndex(text, -1)
	for i := len(found) - 1; i >= 0; i-- {
		at, from := found[i][0], found[i][1]
		end := endOfAddress(text[:at], text[from:])
		switch to := from + end; {
		case cut && strings.Trim(text[to:], trailing) == "":
			text = text[:from] // where its credentials end is not known
		case end > 0:
			text = text[:from] + bare(text[from:to]) + text[to:]
		}
	}
	if text = beside(text); cut {
		text = text[:len(text)-len(lastWord(text))] + hidden
	}
	return text
}

// lastWord returns the word that a text ends with if that may be the beginning of an address.
func lastWord(text string) string {
	word := text[strings.LastIndexFunc(text, ofNone)+1:]
	if strings.Contains(word, ":") && !opening.MatchString(word) {
		return word
	}
	return ""
}

// beside returns a text with its addresses without a scheme, which are between those with one, bare.
func beside(text string) string {
	var out strings.Builder
	for {
		next := opening.FindStringIndex(text)
		if next == nil {
			out.WriteString(words(text))
			return out.String()
		}
		scheme := len(strings.TrimRightFunc(text[:next[0]], ofScheme))
		end := next[1] + endOfAddress(text[:next[0]], text[next[1]:])
		out.WriteString(words(text[:scheme]))
		out.WriteString(text[scheme:end])
		text = text[end:]
	}
}

// readable returns as much of a text as is read.
func readable(text string) string {
	text = text[:min(len(text), mostRead)]
	if found := opening.FindAllStringIndex(text, mostAddresses+1); len(found) > mostAddresses {
		return text[:found[mostAddresses][1]]
	}
	return text
}

// trailing are the marks that end a sentence and not an address that stands before them.
const trailing = `:;,.)]}'\`

// endOfAddress returns where in the text after its opening an address ends: with the quotation mark that it began with, at a
// space or a mark that is in none, or, unless that is all of it, at the punctuation before those.
func endOfAddress(before, after string) int {
	before = strings.TrimRightFunc(before, ofScheme)
	if quote := before[max(0, len(before)-1):]; quote != "" && strings.Contains("\"'`", quote) {
		return closing(after, quote, backslashes(before[:len(before)-1]))
	}
	end := strings.IndexFunc(after, ofNone)
	if end < 0 {
		end = len(after)
	}
	return len(strings.TrimRight(after[:end], trailing))
}

// ofNone reports whether a character is in no address.
func ofNone(r rune) bool { return strings.ContainsRune(" \t\r\n\v\f\"<>`", r) }

func ofScheme(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("+-.", r)
}

// closing returns where the quotation ends that began with a mark after so many backslashes; with the text where it does not.
func closing(text, quote string, escapes int) int {
	for at := 0; ; {
		next := strings.Index(text[at:], quote)
		if next < 0 {
			return len(text)
		}
		if at += next; backslashes(text[:at]) <= escapes {
			return at - min(escapes, backslashes(text[:at]))
		}
		at += len(quote)
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
		escapes := backslashes(authority)
		authority, rest = authority[:len(authority)-escapes], authority[len(authority)-escapes:]+"/"+rest
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
