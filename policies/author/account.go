package author

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// How members hear of the hub's users, service accounts and groups.
const (
	// Prefix begins every name that the hub gives somebody in members. Nobody who
	// comes through the hub by himself has such a name.
	Prefix = "flotilla:"
	// Everybody is the group of all authors, in members: what the hub gives
	// system:authenticated is given to it.
	Everybody = Prefix + "authors"

	userPrefix    = Prefix + "user:"
	groupPrefix   = Prefix + "group:"
	accountPrefix = Prefix + "serviceaccount:"
	allAccounts   = Prefix + "serviceaccounts"
	systemPrefix  = "system:"
	hubAccount    = "system:serviceaccount:"
	hubAccounts   = "system:serviceaccounts"
	hubEverybody  = "system:authenticated"
)

// The control plane's own users: its API server, as which the loops and Kubernetes'
// controllers within it act, and the account of loops that run apart from it.
const (
	ownServer = "system:apiserver"
	ownLoops  = hubAccount + "karmada-system:flotilla-controllers"
)

// Own reports whether a user of the hub is a part of the control plane. Other accounts of
// its namespaces are users like any others.
func Own(user string) bool { return user == ownServer || user == ownLoops }

// ErrUnknown says that members know nobody who could stand for a user.
var ErrUnknown = errors.New("members know nobody of this name")

// Account is who stands for an author in a member. The zero value is nobody.
type Account struct {
	// User is the name there, and Groups its groups.
	User   string
	Groups []string
}

// Account returns who stands for the author in members. Errors: ErrUnknown.
func (a Author) Account() (Account, error) {
	user, ok := UserInMembers(a.User)
	if !ok || !plain(user) {
		return Account{}, fmt.Errorf("%q: %w", a.User, ErrUnknown)
	}
	out := Account{User: user, Groups: []string{Everybody}}
	if namespace, _, is := serviceAccount(a.User); is {
		out.Groups = append(out.Groups, allAccounts, allAccounts+":"+namespace)
	}
	for _, group := range a.Groups {
		name, ok := GroupInMembers(group)
		if !ok || !plain(name) {
			continue // a group less is a right less
		}
		if !slices.Contains(out.Groups, name) {
			out.Groups = append(out.Groups, name)
		}
	}
	return out, nil
}

// UserInMembers returns how members hear of a user of the hub; false where they do
// not: parts of a cluster, agents, and who did not say his name are nobody there.
func UserInMembers(name string) (string, bool) {
	if namespace, short, is := serviceAccount(name); is {
		return ServiceAccountInMembers(namespace, short), true
	}
	if name == "" || strings.HasPrefix(name, systemPrefix) {
		return "", false
	}
	return userPrefix + name, true
}

// ServiceAccountInMembers returns how members hear of a service account of the hub.
func ServiceAccountInMembers(namespace, name string) string {
	return accountPrefix + namespace + ":" + name
}

// GroupInMembers returns how members hear of a group of the hub; false where they do
// not: groups that the hub gives a meaning to mean something else there.
func GroupInMembers(name string) (string, bool) {
	namespace, ofOne := strings.CutPrefix(name, hubAccounts+":")
	switch {
	case name == hubEverybody:
		return Everybody, true
	case name == hubAccounts:
		return allAccounts, true
	case ofOne && namespace != "":
		return allAccounts + ":" + namespace, true
	case name == "", strings.HasPrefix(name, systemPrefix), strings.HasPrefix(name, Prefix):
		return "", false
	}
	return groupPrefix + name, true
}

// serviceAccount reads the user name of a service account of the hub.
func serviceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, hubAccount)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}

// plain reports whether a name is the same once it was sent in a header.
func plain(name string) bool {
	return name != "" && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}
