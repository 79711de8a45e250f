package author_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/author"
)

func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		user   string
		groups []string
		want   author.Author
	}{
		"a user":             {"alice", []string{"system:authenticated"}, author.Author{User: "alice"}},
		"one with groups":    {"alice", []string{"ops", "dev", "system:authenticated", "ops", ""}, author.Author{User: "alice", Groups: []string{"dev", "ops"}}},
		"a service account":  {"system:serviceaccount:shop:default", []string{"system:serviceaccounts", "system:serviceaccounts:shop"}, author.Author{User: "system:serviceaccount:shop:default"}},
		"one without groups": {"alice", nil, author.Author{User: "alice"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, author.Of(tc.user, tc.groups)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("group-%03d", i))
	}
	if got := author.Of("alice", many).Groups; len(got) != 64 || got[0] != "group-000" || got[63] != "group-063" {
		t.Errorf("of 1000 groups %d are kept: %v", len(got), got)
	}
}

func TestText(t *testing.T) {
	alice, bob := author.Author{User: "alice", Groups: []string{"dev"}}, author.Author{User: "bob"}
	both := author.Authors{alice}.With(author.Authors{bob, alice}).With(nil)
	if diff := cmp.Diff(author.Authors{alice, bob}, both); diff != "" {
		t.Errorf("together (-want +got):\n%s", diff)
	}
	for _, authors := range []author.Authors{nil, {alice}, both} {
		got, err := author.Parse(authors.String())
		if diff := cmp.Diff(authors, got); err != nil || diff != "" {
			t.Errorf("%s is read as (-want +got): %v\n%s", authors, err, diff)
		}
	}
	for name, text := range map[string]string{
		"no JSON": "alice", "an object": `{"user":"alice"}`, "nobody": `[]`, "null": "null", "one without a name": `[{"user":"alice"},{"groups":["dev"]}]`,
	} {
		if got, err := author.Parse(text); !errors.Is(err, author.ErrUnreadable) || len(got) > 0 {
			t.Errorf("%s: %v, %v: it must not stand for the control plane", name, got, err)
		}
	}
}

// TestTogether: groups only add rights, so that who is there twice is there with the
// fewest, and nobody is asked who may do no less than another of his name.
func TestTogether(t *testing.T) {
	who := func(user string, groups ...string) author.Author { return author.Author{User: user, Groups: groups} }
	for name, tc := range map[string]struct{ a, b, want author.Authors }{
		"others":                         {author.Authors{who("alice")}, author.Authors{who("bob")}, author.Authors{who("alice"), who("bob")}},
		"the same with a group more":     {author.Authors{who("alice", "dev"), who("bob")}, author.Authors{who("alice", "dev", "ops")}, author.Authors{who("alice", "dev"), who("bob")}},
		"the same with a group less":     {author.Authors{who("bob"), who("alice", "dev", "ops")}, author.Authors{who("alice", "ops")}, author.Authors{who("bob"), who("alice", "ops")}},
		"the same without any":           {author.Authors{who("alice", "dev"), who("bob"), who("alice", "ops")}, author.Authors{who("alice")}, author.Authors{who("alice"), who("bob")}},
		"the same with another group":    {author.Authors{who("alice", "dev")}, author.Authors{who("alice", "ops")}, author.Authors{who("alice", "dev"), who("alice", "ops")}},
		"another with all of the groups": {author.Authors{who("alice", "dev")}, author.Authors{who("bob", "dev", "ops")}, author.Authors{who("alice", "dev"), who("bob", "dev", "ops")}},
		"nobody":                         {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.a.With(tc.b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwn: the control plane's own users are known by name, not by their namespace.
func TestOwn(t *testing.T) {
	for user, want := range map[string]bool{
		"system:apiserver": true, "system:serviceaccount:karmada-system:flotilla-controllers": true,
		"system:serviceaccount:karmada-system:default": false, "system:serviceaccount:kube-system:default": false,
		"system:serviceaccount:kube-system:flotilla-controllers": false, "flotilla-controllers": false, "": false,
	} {
		if got := author.Own(user); got != want {
			t.Errorf("%q is the control plane's own: %v, want %v", user, got, want)
		}
	}
}

// TestAccounts: nobody in a member is taken for one of the hub's, nor inherits what
// the member gives its own.
func TestAccounts(t *testing.T) {
	everybody := "flotilla:authors"
	for name, tc := range map[string]struct {
		author author.Author
		want   author.Account
	}{
		"a user":             {author.Author{User: "alice"}, author.Account{User: "flotilla:user:alice", Groups: []string{everybody}}},
		"a user with groups": {author.Author{User: "alice", Groups: []string{"dev", "oidc:ops"}}, author.Account{User: "flotilla:user:alice", Groups: []string{everybody, "flotilla:group:dev", "flotilla:group:oidc:ops"}}},
		"a service account":  {author.Author{User: "system:serviceaccount:shop:ci"}, author.Account{User: "flotilla:serviceaccount:shop:ci", Groups: []string{everybody, "flotilla:serviceaccounts", "flotilla:serviceaccounts:shop"}}},
		"an agent":           {author.Author{User: "system:karmada:agent:east"}, author.Account{}},
		"one who is called as somebody in members": {author.Author{User: "flotilla:serviceaccount:shop:ci"}, author.Account{User: "flotilla:user:flotilla:serviceaccount:shop:ci", Groups: []string{everybody}}},
		"groups that mean somebody in members":     {author.Author{User: "alice", Groups: []string{"flotilla:masters", "system:masters", "a\nb", " dev"}}, author.Account{User: "flotilla:user:alice", Groups: []string{everybody, "flotilla:group: dev"}}},
		"nobody":                                   {author.Author{}, author.Account{}},
		"a node":                                   {author.Author{User: "system:node:a"}, author.Account{}},
		"a scheduler":                              {author.Author{User: "system:kube-scheduler"}, author.Account{}},
		"who did not say":                          {author.Author{User: "system:anonymous"}, author.Account{}},
		"an account of no namespace":               {author.Author{User: "system:serviceaccount::ci"}, author.Account{}},
		"an account of two names":                  {author.Author{User: "system:serviceaccount:shop:ci:x"}, author.Account{}},
		"a name that ends a header":                {author.Author{User: "alice\r\nImpersonate-Group: system:masters"}, author.Account{}},
		"a name that a header cuts":                {author.Author{User: "alice "}, author.Account{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.author.Account()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if unknown := tc.want.User == ""; unknown != errors.Is(err, author.ErrUnknown) {
				t.Errorf("error %v", err)
			}
		})
	}
}
