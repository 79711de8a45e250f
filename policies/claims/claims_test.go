package claims_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/claims"
)

var ours = claims.Claimant{Hub: "one", Cluster: "east", Address: "https://one"}

func TestTake(t *testing.T) {
	for name, tc := range map[string]struct {
		claim   *claims.Claim
		verdict claims.Verdict
		want    claims.Claim
		changed bool
	}{
		"a member that is nobody's": {nil, claims.Free, claims.Claim{Hub: "one", Cluster: "east", Address: "https://one"}, true},
		"our own":                   {&claims.Claim{Hub: "one", Cluster: "east", Address: "https://1"}, claims.Ours, claims.Claim{Hub: "one", Cluster: "east", Address: "https://1"}, false},
		"our own, under another name": {
			&claims.Claim{Hub: "one", Cluster: "west", Former: []string{"two"}}, claims.Ours,
			claims.Claim{Hub: "one", Cluster: "east", Address: "https://one", Former: []string{"two"}, Names: []string{"west"}}, true,
		},
		"our own, under a name that it had": {
			&claims.Claim{Hub: "one", Cluster: "west", Address: "https://1", Names: []string{"east", "north"}}, claims.Ours,
			claims.Claim{Hub: "one", Cluster: "east", Address: "https://1", Names: []string{"north", "west"}}, true,
		},
		"another's, that had other names there": {
			&claims.Claim{Hub: "two", Cluster: "east", Names: []string{"west"}}, claims.Anothers,
			claims.Claim{Hub: "one", Cluster: "east", Address: "https://one", Former: []string{"two"}}, true,
		},
		"another's": {
			&claims.Claim{Hub: "two", Cluster: "east", Address: "https://two", Former: []string{"one", "three"}}, claims.Anothers,
			claims.Claim{Hub: "one", Cluster: "east", Address: "https://one", Former: []string{"three", "two"}}, true,
		},
		"our own, from another mode on": {
			&claims.Claim{Hub: "one", Cluster: "east", Address: "https://1", Mode: claims.Push}, claims.Ours,
			claims.Claim{Hub: "one", Cluster: "east", Address: "https://1", Mode: claims.Pull}, true,
		},
		"one that many had": {
			&claims.Claim{Hub: "9", Former: []string{"1", "2", "3", "4", "5", "6", "7", "8"}}, claims.Anothers,
			claims.Claim{Hub: "one", Cluster: "east", Address: "https://one", Former: []string{"2", "3", "4", "5", "6", "7", "8", "9"}}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := claims.Judge(tc.claim, ours); got != tc.verdict {
				t.Errorf("Judge = %v, want %v", got, tc.verdict)
			}
			asks := ours
			asks.Mode = tc.want.Mode
			got, changed := claims.Take(tc.claim, asks)
			if diff := cmp.Diff(tc.want, *got); diff != "" || changed != tc.changed {
				t.Errorf("Take: changed = %v (-want +got):\n%s", changed, diff)
			}
			again, err := claims.Parse(got.Encode())
			if diff := cmp.Diff(got, again); diff != "" || err != nil {
				t.Errorf("Parse = %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestPushed: an agent that was left behind does not act where the hub does.
func TestPushed(t *testing.T) {
	agent, hub := claims.Claimant{Hub: "one", Mode: claims.Pull}, claims.Claimant{Hub: "one", Mode: claims.Push}
	for name, tc := range map[string]struct {
		claim *claims.Claim
		asks  claims.Claimant
		want  bool
	}{
		"nobody has it":                         {nil, agent, false},
		"it does not say who applies there":     {&claims.Claim{Hub: "one"}, agent, false},
		"an agent of the hub that pushes there": {&claims.Claim{Hub: "one", Mode: claims.Push}, agent, true},
		"an agent of another hub":               {&claims.Claim{Hub: "two", Mode: claims.Push}, agent, false},
		"the hub itself":                        {&claims.Claim{Hub: "one", Mode: claims.Push}, hub, false},
		"an agent where agents apply":           {&claims.Claim{Hub: "one", Mode: claims.Pull}, agent, false},
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
	fresh, contested := claims.Standing{Hub: "one"}, claims.Standing{Hub: "one", Contested: true}
	for name, tc := range map[string]struct {
		standing           claims.Standing
		marks              claims.Ownership
		foreign, mayRemove bool
	}{
		"applied by this hub":                                  {fresh, claims.Ownership{Hub: "one", Work: work}, false, true},
		"applied by this hub, for a Work that was made anew":   {contested, claims.Ownership{Hub: "one", Work: "w-0"}, false, true},
		"applied by another, whatever its ids":                 {fresh, claims.Ownership{Hub: "two", Work: work}, true, false},
		"applied long ago, for this Work":                      {contested, claims.Ownership{Work: work}, false, true},
		"applied long ago, for another":                        {fresh, claims.Ownership{Work: "w-2"}, false, false},
		"the same, where another hub was":                      {contested, claims.Ownership{Work: "w-2"}, true, false},
		"applied before there were ids":                        {fresh, claims.Ownership{}, false, true},
		"the same, where there was another hub":                {contested, claims.Ownership{}, true, false},
		"a hub that does not know who it is goes by names":     {claims.Standing{}, claims.Ownership{Hub: "two", Work: "w-2"}, false, true},
		"a hub that does not know who it is, and nothing said": {claims.Standing{}, claims.Ownership{}, false, true},
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
		claim *claims.Claim
		want  claims.Standing
	}{
		"no claim could be written": {nil, claims.Standing{Hub: "one"}},
		"never anybody else's":      {&claims.Claim{Hub: "one"}, claims.Standing{Hub: "one"}},
		"taken over":                {&claims.Claim{Hub: "one", Former: []string{"two"}}, claims.Standing{Hub: "one", Contested: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := claims.StandingOf(tc.claim, ours); got != tc.want {
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
		c, err := claims.Parse(text)
		switch {
		case err != nil && !errors.Is(err, claims.ErrMalformed):
			t.Errorf("error: %v", err)
		case err == nil && text != "" && c.Hub == "":
			t.Errorf("a claim of nobody: %q", text)
		case err == nil && c != nil:
			if again, err := claims.Parse(c.Encode()); err != nil || cmp.Diff(c, again) != "" {
				t.Errorf("read back: %v, %v", again, err)
			}
		}
	})
}
