package selfregistration_test

import (
	"errors"
	"testing"

	"github.com/flotilla-io/flotilla/agent/selfregistration"
)

func TestWhichVersionsFit(t *testing.T) {
	cases := map[string]struct {
		agent, hub string
		fits       bool
	}{
		"the same":                            {"v1.5.0", "v1.5.0", true},
		"a hub with another patch":            {"v1.5.3", "v1.5.0", true},
		"a hub that is newer by two":          {"v1.5.0", "v1.7.9", true},
		"a hub that is newer by three":        {"v1.5.0", "v1.8.0", false},
		"a hub that is older":                 {"v1.5.0", "v1.4.9", false},
		"a hub of the next major":             {"v1.5.0", "v2.0.0", false},
		"a hub of the last major":             {"v2.0.0", "v1.9.0", false},
		"a hub that says nothing":             {"v1.5.0", "", true},
		"an agent from a work tree":           {"devel", "v1.5.0", true},
		"a hub from a commit after a release": {"v1.5.0", "v1.5.0-12-gabcdef (abc) go1.26", true},
		"what is no version":                  {"v1.5.0", "99999999999999999999.1.1", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := selfregistration.Fits(c.agent, c.hub)
			if (err == nil) != c.fits || err != nil && !errors.Is(err, selfregistration.ErrRefused) {
				t.Errorf("agent %s, hub %s: %v", c.agent, c.hub, err)
			}
		})
	}
}
