package hubclaim_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

var ours = hubclaim.Claimant{Hub: "one", Cluster: "east", Address: "https://one"}

func TestTake(t *testing.T) {
	for name, tc := range map[string]struct {
		claim   *hubclaim.Claim
		verdict hubclaim.Verdict
		want    hubclaim.Claim
		changed bool
	}{
		"a member that is nobody's": {nil, hubclaim.Free, hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://one"}, true},
		"our own":                   {&hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://1"}, hubclaim.Ours, hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://1"}, false},
		"our own, under another name": {
			&hubclaim.Claim{Hub: "one", Cluster: "west", Former: []string{"two"}}, hubclaim.Ours,
			hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://one", Former: []string{"two"}, Names: []string{"west"}}, true,
		},
		"our own, under a name that it had": {
			&hubclaim.Claim{Hub: "one", Cluster: "west", Address: "https://1", Names: []string{"east", "north"}}, hubclaim.Ours,
			hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://1", Names: []string{"north", "west"}}, true,
		},
		"another's, that had other names there": {
			&hubclaim.Claim{Hub: "two", Cluster: "east", Names: []string{"west"}}, hubclaim.Anothers,
			hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://one", Former: []string{"two"}}, true,
		},
		"another's": {
			&hubclaim.Claim{Hub: "two", Cluster: "east", Address: "https://two", Former: []string{"one", "three"}}, hubclaim.Anothers,
			hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://one", Former: []string{"three", "two"}}, true,
		},
		"our own, from another mode on": {
			&hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://1", Mode: hubclaim.Push}, hubclaim.Ours,
			hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://1", Mode: hubclaim.Pull}, true,
		},
		"one that many had": {
			&hubclaim.Claim{Hub: "9", Former: []string{"1", "2", "3", "4", "5", "6", "7", "8"}}, hubclaim.Anothers,
			hubclaim.Claim{Hub: "one", Cluster: "east", Address: "https://one", Former: []string{"2", "3", "4", "5", "6", "7", "8", "9"}}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hubclaim.Judge(tc.claim, ours); got != tc.verdict {
				t.Errorf("Judge = %v, want %v", got, tc.verdict)
			}
			asks := ours
			asks.Mode = tc.want.Mode
			got, changed := hubclaim.Take(tc.claim, asks)
			if diff := cmp.Diff(tc.want, *got); diff != "" || changed != tc.changed {
				t.Errorf("Take: changed = %v (-want +got):\n%s", changed, diff)
			}
			again, err := hubclaim.Parse(got.Encode())
			if diff := cmp.Diff(got, again); diff != "" || err != nil {
				t.Errorf("Parse = %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestPushed: an agent that was left behind does not act where the hub does.
func TestPushed(t *testing.T) {
	agent, hub := hubclaim.Claimant{Hub: "one", Mode: hubclaim.Pull}, hubclaim.Claimant{Hub: "one", Mode: hubclaim.Push}
	for name, tc := range map[string]struct {
		claim *hubclaim.Claim
		asks  hubclaim.Claimant
		want  bool
	}{
		"nobody has it":                         {nil, agent, false},
		"it does not say who applies there":     {&hubclaim.Claim{Hub: "one"}, agent, false},
		"an agent of the hub that pushes there": {&hubclaim.Claim{Hub: "one", Mode: hubclaim.Push}, agent, true},
		"an agent of another hub":               {&hubclaim.Claim{Hub: "two", Mode: hubclaim.Push}, agent, false},
		"the hub itself":                        {&hubclaim.Claim{Hub: "one", Mode: hubclaim.Push}, hub, false},
		"an agent where agents apply":           {&hubclaim.Claim{Hub: "one", Mode: hubclaim.Pull}, agent, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.claim.Pushed(tc.asks); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWhoseAnObjectIs(t *testing.T) {
	const work = "w-1"
	fresh, contested := hubclaim.Standing{Hub: "one"}, hubclaim.Standing{Hub: "one", Contested: true}
	for name, tc := range map[string]struct {
		standing           hubclaim.Standing
		marks              hubclaim.Ownership
		foreign, mayRemove bool
	}{
		"applied by this hub":                                  {fresh, hubclaim.Ownership{Hub: "one", Work: work}, false, true},
		"applied by this hub, for a Work that was made anew":   {contested, hubclaim.Ownership{Hub: "one", Work: "w-0"}, false, true},
		"applied by another, whatever its ids":                 {fresh, hubclaim.Ownership{Hub: "two", Work: work}, true, false},
		"applied long ago, for this Work":                      {contested, hubclaim.Ownership{Work: work}, false, true},
		"applied long ago, for another":                        {fresh, hubclaim.Ownership{Work: "w-2"}, false, false},
		"the same, where another hub was":                      {contested, hubclaim.Ownership{Work: "w-2"}, true, false},
		"applied before there were ids":                        {fresh, hubclaim.Ownership{}, false, true},
		"the same, where there was another hub":                {contested, hubclaim.Ownership{}, true, false},
		"a hub that does not know who it is goes by names":     {hubclaim.Standing{}, hubclaim.Ownership{Hub: "two", Work: "w-2"}, false, true},
		"a hub that does not know who it is, and nothing said": {hubclaim.Standing{}, hubclaim.Ownership{}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.standing.Foreign(tc.marks, work); got != tc.foreign {
				t.Errorf("Foreign = %v", got)
			}
			if got := tc.standing.MayRemove(tc.marks, work); got != tc.mayRemove {
				t.Errorf("MayRemove = %v", got)
			}
		})
	}
}

func TestStandingOf(t *testing.T) {
	for name, tc := range map[string]struct {
		claim *hubclaim.Claim
		want  hubclaim.Standing
	}{
		"no claim could be written": {nil, hubclaim.Standing{Hub: "one"}},
		"never anybody else's":      {&hubclaim.Claim{Hub: "one"}, hubclaim.Standing{Hub: "one"}},
		"taken over":                {&hubclaim.Claim{Hub: "one", Former: []string{"two"}}, hubclaim.Standing{Hub: "one", Contested: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hubclaim.StandingOf(tc.claim, ours); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add(`{"hub":"one","cluster":"east"}`)
	f.Add(`{"hub":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := hubclaim.Parse(text)
		switch {
		case err != nil && !errors.Is(err, hubclaim.ErrMalformed):
			t.Errorf("error: %v", err)
		case err == nil && text != "" && c.Hub == "":
			t.Errorf("a claim of nobody: %q", text)
		case err == nil && c != nil:
			if again, err := hubclaim.Parse(c.Encode()); err != nil || cmp.Diff(c, again) != "" {
				t.Errorf("read back: %v, %v", again, err)
			}
		}
	})
}
