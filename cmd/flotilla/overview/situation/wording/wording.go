// Package wording names objects in messages and in the commands of next steps.
//
// In go the identities of objects, or names; out come texts: titles, the first few of many, arguments of commands. It reads
// nothing, and leaves to others in which order objects come.
package wording

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Most is how many of several objects are named.
const Most = 3

// Title returns the kind and name, as in "Deployment shop/web".
func Title(id inventory.ID) string {
	if id.Namespace == "" {
		return id.GroupKind.Kind + " " + id.Name
	}
	return id.GroupKind.Kind + " " + id.Namespace + "/" + id.Name
}

// Object returns the arguments by which a command is about an object, as in "deployment/web -n shop".
func Object(id inventory.ID) string {
	return strings.ToLower(id.GroupKind.Kind) + "/" + id.Name + InNamespace(id.Namespace)
}

// Explains returns the command that explains an object.
func Explains(id inventory.ID) string { return "flotilla explain " + Object(id) }

// InNamespace returns the option of a command for a namespace, after a space; empty for none.
func InNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// Some sorts names, and lists the first of them.
func Some(names []string) string {
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), Most)], ", ")
	if len(names) > Most {
		text += " …"
	}
	return text
}

// Besides returns how many more objects than the first a message is about; empty if it is about one.
func Besides(ids []inventory.ID) string {
	var names []string
	for _, id := range ids[1:min(len(ids), Most)] {
		names = append(names, Title(id))
	}
	more := len(ids) - 1
	if more == 0 {
		return ""
	}
	text := fmt.Sprintf("; the same of %d more: %s", more, strings.Join(names, ", "))
	if more >= Most {
		text += " …"
	}
	return text
}

// Nowhere returns what to call the objects, and what it means that no policy selects them: volume claims do not run in any case.
func Nowhere(ids []inventory.ID) (what, comes string) {
	one := len(ids) == 1
	switch claims := slices.ContainsFunc(ids, func(id inventory.ID) bool { return volumes.IsVolumeClaim(id.GroupKind) }); {
	case claims && one:
		return "objects", "no cluster has it"
	case claims:
		return "objects", "no cluster has them"
	case one:
		return "workloads", "it runs nowhere"
	default:
		return "workloads", "they run nowhere"
	}
}
