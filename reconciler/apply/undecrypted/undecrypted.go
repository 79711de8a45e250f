// Package undecrypted has the words by which a Kustomization says why its files are not decrypted, and reads them.
//
// In go the Secret of the keys, or a Kustomization with the message of its condition; out come texts, or what keeps the
// files from being decrypted. Flux has one reason for all of that, BuildFailed, which its clients read, so that the words
// distinguish them. It never reads an object, and never names anything out of a message.
package undecrypted

import (
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/sources/build/sealed"
)

// Fault is what is to be put right outside of the files; empty for nothing.
type Fault string

// The faults.
const (
	// Unset means that spec.decryption is not set.
	Unset Fault = "Unset"
	// Unnamed means that spec.decryption names no Secret.
	Unnamed Fault = "Unnamed"
	// SecretMissing means that the Secret with the keys does not exist.
	SecretMissing Fault = "SecretMissing"
	// SecretUnusable means that the Secret has no key that can be used, or that a service does not take what it has.
	SecretUnusable Fault = "SecretUnusable"
	// KeyMissing means that none of the keys is for the file.
	KeyMissing Fault = "KeyMissing"
)

// keyForms is how the Secret of the keys has them.
const keyForms = "NAME.agekey or NAME.asc"

// Texts that follow on the name of a file that is encrypted.
const (
	WhereUnset   = "spec.decryption is not set: set spec.decryption.provider to sops, and secretRef to a Secret with the private key as " + keyForms
	WhereUnnamed = "spec.decryption.secretRef is not set: name a Secret with the private key as " + keyForms
)

// WhereMissing says that the Secret does not exist.
func WhereMissing(secret client.ObjectKey) string {
	return about(secret) + " does not exist: create it, with the private key as " + keyForms
}

// WhereUnusable says that the keys of the Secret cannot be used, and why.
func WhereUnusable(secret client.ObjectKey, err error) error {
	return fmt.Errorf("%s: %w", about(secret), err)
}

// WhereRefused says why a service does not open a file, with what the Secret has for it.
func WhereRefused(secret client.ObjectKey, err error) string {
	return err.Error() + of(secret)
}

// of follows on what a service said.
func of(secret client.ObjectKey) string { return " (Secret " + secret.String() + ")" }

func about(secret client.ObjectKey) string {
	return "spec.decryption.secretRef: the Secret " + secret.String()
}

// Of returns what keeps the files of a Kustomization from being decrypted, by the message of its condition. It goes by the
// spec as well, so that a message with text of others leads at most to another field of the same Kustomization.
func Of(ks *kustomizev1.Kustomization, message string) Fault {
	spec := ks.Spec.Decryption
	says := func(text string) bool { return strings.Contains(message, text) }
	switch {
	case spec == nil:
		return when(says(WhereUnset), Unset)
	case spec.SecretRef == nil:
		return when(says(WhereUnnamed), Unnamed)
	}
	secret := client.ObjectKey{Namespace: ks.Namespace, Name: spec.SecretRef.Name}
	switch {
	case says(WhereMissing(secret)):
		return SecretMissing
	case says(about(secret) + ": "), says(of(secret)):
		return SecretUnusable
	default:
		return when(says(": "+sealed.ErrNoKey.Error()+": "), KeyMissing)
	}
}

func when(is bool, f Fault) Fault {
	if is {
		return f
	}
	return ""
}
