package excerpt

import (
	"regexp"
	"strings"
)

var (
	// afterAt is what follows the credentials of an address without a scheme: a host with a path, a port, or both.
	afterAt = regexp.MustCompile(`^(\[[0-9A-Fa-f:.%]+\]|[a-z]+\([^()@]*\)|[\pL\pN][\pL\pN._-]*)(:[0-9]{1,5})?(\\*/|\\+u002[fF]|[^\pL\pN]|$)`)
	// noHost is what follows the @ of revisions, images and modules.
	noHost = regexp.MustCompile(`^(sha[0-9]+|v?[0-9]+(\.[0-9]+){0,2}([-+].*)?)$`)
)

// words returns a text without addresses that have a scheme, with those that have none bare.
func words(text string) string {
	if !strings.Contains(text, "@") {
		return text
	}
	var out strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, ofNoWord)
		if end < 0 {
			end = len(text)
		}
		out.WriteString(word(text[:end]))
		rest := strings.TrimLeftFunc(text[end:], ofNoWord)
		out.WriteString(text[end : len(text)-len(rest)])
		text = rest
	}
	return out.String()
}

// ofNoWord reports whether a character is between words.
func ofNoWord(r rune) bool { return r == '\'' || ofNone(r) }

// word returns a word, which is bare if it is an address with credentials.
func word(text string) string {
	end := len(strings.TrimRight(text, trailing))
	at := strings.LastIndex(text, "@")
	for ; at >= 0 && !leadsTo(text[at+1:]); at = strings.LastIndex(text[:at], "@") {
	}
	if at < 0 || at >= end {
		return text
	}
	from, found := user(text[:at])
	if !found {
		return text
	}
	return text[:from] + bare(text[from:end]) + text[end:]
}

// leadsTo reports whether a text begins with the host of an address.
func leadsTo(text string) bool {
	found := afterAt.FindStringSubmatch(text)
	if found == nil || noHost.MatchString(found[1]) {
		return false
	}
	return found[2] != "" || strings.HasSuffix(found[3], "/") || strings.HasPrefix(found[3], `\`)
}

// user returns where credentials begin that end with a text: a name, which may be empty, a colon and a password.
func user(text string) (from int, found bool) {
	for at := 0; ; at++ {
		next := strings.Index(text[at:], ":")
		if next < 0 {
			return 0, false
		}
		at += next
		from = strings.LastIndexAny(text[:at], "([{=,;|:") + 1
		if password := text[at+1:]; password != "" && !strings.ContainsAny(password[:1], `/\`) && !strings.ContainsAny(text[from:at], `/\`) {
			return from, true
		}
	}
}
