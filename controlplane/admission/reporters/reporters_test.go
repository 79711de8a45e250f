package reporters

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// TestNamesThatLookLikeTheControlPlanes checks that other users cannot report under a name
// that people could take for the control plane's or for that of a part of it.
func TestNamesThatLookLikeTheControlPlanes(t *testing.T) {
	agent := &user.DefaultInfo{Name: "system:karmada:agent:east"}
	for name, tc := range map[string]struct {
		who     *user.DefaultInfo // nobody in particular
		name    string
		refused bool
	}{
		"no name":                          {name: ""},
		"one of his own":                   {name: "my-controller"},
		"one with the name within":         {name: "my-flotilla"},
		"one with the beginning of it":     {name: "flot"},
		"one of signs":                     {name: "example.com/my_controller (v1.2)"},
		"the control plane's":              {name: "flotilla", refused: true},
		"in capitals":                      {name: "Flotilla", refused: true},
		"with a blank behind it":           {name: "flotilla ", refused: true},
		"with a blank before it":           {name: " flotilla", refused: true},
		"with blanks within":               {name: "f l o t i l l a", refused: true},
		"with a tab and a line break":      {name: "\tflotilla\n", refused: true},
		"with what a terminal obeys":       {name: "\x1bflo\x00tilla\x7f", refused: true},
		"with a part":                      {name: "flotilla/x", refused: true},
		"with more":                        {name: "flotillad", refused: true},
		"with a space of no width":         {name: "flotilla\u200b", refused: true},
		"with a joiner":                    {name: "flo\u2060tilla", refused: true},
		"with a soft hyphen":               {name: "flo\u00adtilla", refused: true},
		"with a wide space":                {name: "\u3000flotilla", refused: true},
		"with a mark that nobody sees":     {name: "flotilla\ufe0f", refused: true},
		"with a filler":                    {name: "\u3164flotilla", refused: true},
		"with bytes that are no text":      {name: "flotilla\xff", refused: true},
		"with letters of another alphabet": {name: "fl\u043etill\u0430", refused: true},
		"with wide letters":                {name: "\uff46lotilla", refused: true},
		"with other letters and figures":   {name: "fI0ti1|a", refused: true},
		"an agent's, by another":           {name: "flotilla-agent", refused: true},
		"an agent's":                       {who: agent, name: "flotilla-agent"},
		"the control plane's, by an agent": {who: agent, name: "flotilla", refused: true},
		"like an agent's, by one":          {who: agent, name: "flotilla-agent\u200b", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			who := tc.who
			if who == nil {
				who = &user.DefaultInfo{Name: "alice"}
			}
			if got := mayReportAs(who, tc.name); got == tc.refused {
				t.Errorf("%q: %t", tc.name, got)
			}
		})
	}
}
