package symptom

import (
	"regexp"
	"strings"
)

var (
	// preamble is what a container runtime's answer begins with.
	preamble = regexp.MustCompile(`rpc error: code = \w+ desc = `)
	// named is where a message names the image, before it says more.
	named = regexp.MustCompile(`(?:image|reference) "([^"]+)": `)
	// request is what was asked of a registry; why that failed follows.
	request = regexp.MustCompile(`failed to do request: \w+ "[^"]*": `)
)

// ofImage returns what is said of an image that is not there: its name, and the end of the message. What is wrong stands at its
// end, and most texts that it gets into are cut.
func ofImage(message string) string {
	message = request.ReplaceAllString(preamble.ReplaceAllString(message, ""), "")
	all := named.FindAllStringSubmatchIndex(message, -1)
	if len(all) == 0 {
		return message
	}
	last := all[len(all)-1]
	image, rest := message[last[2]:last[3]], message[last[1]:]
	return image + ": " + strings.TrimPrefix(rest, image+": ")
}
