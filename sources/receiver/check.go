package receiver

import (
	"context"
	"errors"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/expression"
)

// Check returns what is wrong with a Receiver, such as its expressions, in the words of its condition, with the field first; nil
// for nothing. It asks nobody.
func Check(ctx context.Context, of *notificationv1.Receiver) error {
	if err := checkSecret(of); err != nil {
		return err
	}
	r := &Reconciler{lines: expression.NewCompiler(expression.Limits{})}
	_, err := r.compile(ctx, &state{object: of})
	return err
}

// Serves reports whether objects of a kind that Receivers may name are looked at.
func Serves(kind string) bool {
	_, served := kinds[kind]
	return served
}

// checkSecret returns an error for a Receiver that names no Secret, and is of a type that needs one.
func checkSecret(of *notificationv1.Receiver) error {
	if of.Spec.SecretRef != nil || of.Spec.Type == notificationv1.GenericOIDCReceiver {
		return nil
	}
	return loop.Stalled(notificationv1.ValidationFailedReason, errors.New("spec.secretRef is missing: name a Secret with the key token"))
}
