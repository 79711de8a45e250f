package tenancy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultAccount acts for a Kustomization that names no service account. Every
// namespace has it.
const DefaultAccount = "default"

// Rules say what tenants may refer to, and who acts for them. The zero value
// trusts no namespace.
type Rules struct {
	// AllowCrossNamespace lets a Kustomization use a source of another namespace.
	AllowCrossNamespace bool
	// DefaultServiceAccount acts for a Kustomization that names none, in its
	// namespace; empty means DefaultAccount.
	DefaultServiceAccount string
	// PrivilegedNamespaces are those whose Kustomizations the control plane itself
	// acts for, unless they name a service account. Whoever may write
	// Kustomizations or sources there is an administrator.
	PrivilegedNamespaces []string
	// Limits of each other namespace; nil: there are none.
	Limits Limits
}

// Check errs on a name that no service account or namespace can have.
func (r Rules) Check() error {
	if faults := validation.IsDNS1123Subdomain(r.account()); len(faults) > 0 {
		return fmt.Errorf("--default-service-account: %q is not the name of a service account: %s", r.DefaultServiceAccount, strings.Join(faults, ", "))
	}
	for _, namespace := range r.PrivilegedNamespaces {
		if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
			return fmt.Errorf("--privileged-source-namespaces: %q is not the name of a namespace: %s", namespace, strings.Join(faults, ", "))
		}
	}
	return nil
}

func (r Rules) account() string {
	if r.DefaultServiceAccount == "" {
		return DefaultAccount
	}
	return r.DefaultServiceAccount
}

// Subject is what somebody is to act for.
type Subject struct {
	// Namespace that it is in.
	Namespace string
	// ServiceAccountName that it names; may be empty.
	ServiceAccountName string
	// References are what it is made from or waits for.
	References []Reference
}

// Reference is a field of a Subject that names an object.
type Reference struct {
	// Field is its path, such as "spec.sourceRef".
	Field string
	// Namespace of the object; empty means the Subject's.
	Namespace string
}

// Identity is who acts.
type Identity struct {
	// ServiceAccount acts; the zero value stands for the control plane itself.
	ServiceAccount types.NamespacedName
	// Because says why, as the end of a sentence.
	Because string
}

// Privileged reports whether the control plane itself acts.
func (i Identity) Privileged() bool { return i.ServiceAccount == types.NamespacedName{} }

// Check errs on an account of a name that none can have: nothing is done as that, and
// it is no part of a command that people are shown.
func (i Identity) Check() error {
	if i.Privileged() {
		return nil
	}
	if faults := validation.IsDNS1123Subdomain(i.ServiceAccount.Name); len(faults) > 0 {
		return fmt.Errorf("spec.serviceAccountName: %q is not the name of a service account: %s", i.ServiceAccount.Name, strings.Join(faults, ", "))
	}
	return nil
}

// UserName is who the API server takes the service account for; empty if the
// control plane itself acts.
func (i Identity) UserName() string {
	if i.Privileged() {
		return ""
	}
	return "system:serviceaccount:" + i.ServiceAccount.Namespace + ":" + i.ServiceAccount.Name
}

// Of decides who acts for a subject. Whoever may edit what a subject refers to
// decides what is done for it, so that no more than its namespace counts: all
// that it refers to has to be in privileged namespaces, too.
func (r Rules) Of(s Subject) Identity {
	account := func(name, because string, args ...any) Identity {
		return Identity{ServiceAccount: types.NamespacedName{Namespace: s.Namespace, Name: name}, Because: fmt.Sprintf(because, args...)}
	}
	if s.ServiceAccountName != "" {
		return account(s.ServiceAccountName, "as spec.serviceAccountName says")
	}
	if !slices.Contains(r.PrivilegedNamespaces, s.Namespace) {
		return account(r.account(), "as it names no spec.serviceAccountName")
	}
	for _, ref := range s.References {
		if ref.Namespace != "" && !slices.Contains(r.PrivilegedNamespaces, ref.Namespace) {
			return account(r.account(), "as it names no spec.serviceAccountName and %s is in the namespace %s, which --privileged-source-namespaces does not name", ref.Field, ref.Namespace)
		}
	}
	return Identity{Because: "as its namespace is privileged"}
}
