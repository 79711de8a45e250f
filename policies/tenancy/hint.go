package tenancy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// refusal is how an API server says that somebody may not do something.
var refusal = regexp.MustCompile(`User "([^"]+)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)"| at the cluster scope)`)

// plain is what verbs, resources, groups and namespaces are made of. Those of a
// refusal come from manifests, and stand in commands that people paste.
var plain = regexp.MustCompile(`^[A-Za-z0-9./-]*$`)

func unusual(name string) bool { return !plain.MatchString(name) }

// leads is what every hint begins with. Advice goes by it.
const leads = "it acts as the service account "

// mostCommands is how many grants a hint has; nobody weighs more at a time.
const mostCommands = 3

// Hint explains refusals of the API server to whoever wrote a Kustomization:
// who acted and why, and which commands grant all that was missing, each once, unless
// that would hold nobody any more. It returns nothing for texts that are no such
// refusals, and for the control plane itself.
func (i Identity) Hint(texts ...string) string {
	if i.Privileged() || i.Check() != nil {
		return ""
	}
	var fences, open, abroad []right
	for _, r := range i.lacks(texts) {
		switch {
		case r.fence():
			fences = append(fences, r)
		case r.namespace != "" && r.namespace != i.ServiceAccount.Namespace:
			abroad = append(abroad, r)
		default:
			open = append(open, r)
		}
	}
	if len(fences)+len(open)+len(abroad) == 0 {
		return ""
	}
	parts := append([]string{i.lead()}, guarded(fences)...)
	if len(abroad) > 0 {
		parts = append(parts, i.trespassing(abroad))
	}
	if len(open) > 0 {
		what := "to allow it"
		if len(parts) > 1 {
			what = "to allow the rest"
		}
		parts = append(parts, i.allowing(what, open))
	}
	return strings.Join(parts, "; ")
}

// trespassing is about rights in namespaces of others: nobody is to paste a command
// without a thought that gives away what is theirs.
func (i Identity) trespassing(rights []right) string {
	var namespaces []string
	covers := ""
	for _, r := range rights {
		if !slices.Contains(namespaces, r.namespace) {
			namespaces = append(namespaces, r.namespace)
		}
		if r.clusterRole() != "" {
			covers = ", with nearly all that there is, Secrets included"
		}
	}
	what := "is not its own namespace: take what is in it out of these files, or have whoever owns it allow the account to work there"
	if len(namespaces) > 1 {
		what = "are not its own namespaces: take what is in them out of these files, or have whoever owns them allow the account to work there"
	}
	return strings.Join(namespaces, ", ") + " " + i.allowing(what+covers, rights)
}

// allowing is how rights are granted, after what this is for.
func (i Identity) allowing(what string, rights []right) string {
	commands := i.commands(rights)
	if all := len(commands); all > mostCommands {
		what += fmt.Sprintf(", the first %d of %d", mostCommands, all)
		commands = commands[:mostCommands]
	}
	return what + ": " + strings.Join(commands, "; ")
}

// Missing says what to do about a service account that does not exist; nothing for
// the control plane itself, and for a name that no account can have.
func (i Identity) Missing() string {
	if i.Privileged() || i.Check() != nil {
		return ""
	}
	namespace, name := i.ServiceAccount.Namespace, i.ServiceAccount.Name
	return fmt.Sprintf("%s; there is no such account in the namespace %s: create it (kubectl create serviceaccount %s -n %s), or name another one in spec.serviceAccountName",
		i.lead(), namespace, name, namespace)
}

func (i Identity) lead() string { return leads + i.ServiceAccount.String() + ", " + i.Because }

// Advice returns what the hint at the end of a message says to do, without who acts;
// empty if there is none. Only where Foreign went over the rest of the message is
// it sure that nobody else wrote it.
func Advice(message string) string {
	last := strings.LastIndex(message, leads)
	if last < 0 {
		return ""
	}
	_, advice, _ := strings.Cut(message[last:], "; ")
	return advice
}

// Foreign returns a text that others had a part in, so that Advice takes none of it
// for a hint.
func Foreign(text string) string {
	return strings.ReplaceAll(text, leads, "it acts as the account ")
}

// lacks are the rights that refusals say are missing, each once, in their order.
func (i Identity) lacks(texts []string) []right {
	var out []right
	for _, text := range texts {
		for _, found := range refusal.FindAllStringSubmatch(text, -1) {
			if found[1] != i.UserName() || slices.ContainsFunc(found[2:], unusual) {
				continue
			}
			if r := (right{verb: found[2], resource: found[3], group: found[4], namespace: found[5]}); !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// commands grant rights; each is one that can be pasted, and none is there twice.
func (i Identity) commands(rights []right) []string {
	administers := map[string]bool{}
	for _, r := range rights {
		if r.clusterRole() == roleAdmin {
			administers[r.namespace] = true
		}
	}
	var out []string
	for _, r := range rights {
		if r.clusterRole() == roleEdit && administers[r.namespace] {
			continue // who administers a namespace edits it
		}
		if command := strings.Join(r.grant(i), " && "); !slices.Contains(out, command) {
			out = append(out, command)
		}
	}
	return out
}

// guarded says who writes what no right is given away for.
func guarded(fences []right) []string {
	var out, names []string
	for _, r := range fences {
		switch text, name := r.ofNamespace(), r.name(); {
		case text != "" && !slices.Contains(out, text):
			out = append(out, text)
		case text == "" && !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		out = append(out, fmt.Sprintf("%s set bounds, and are an administrator's to write: take them out of these files, and have him apply them, or a Kustomization of his own", strings.Join(names, ", ")))
	}
	return out
}

// ofNamespace says what to do about a Namespace; nothing for another kind.
func (r right) ofNamespace() string {
	switch {
	case !r.isNamespace():
		return ""
	case r.verb == "delete":
		return fmt.Sprintf("a Namespace is an administrator's to delete: have him delete %s, with all that is in it, or put it back into these files", cmp.Or(r.namespace, "it"))
	case r.namespace == "":
		return "a Namespace is an administrator's to write: take it out of these files, and have him make it if it is not there, or apply it by a Kustomization of his own"
	default:
		return fmt.Sprintf("a Namespace is an administrator's to write: take %s out of these files, and have him make it if it is not there (kubectl create namespace %s), or apply it by a Kustomization of his own", r.namespace, r.namespace)
	}
}
