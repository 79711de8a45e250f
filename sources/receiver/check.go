package receiver

import (
	"context"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/expression"
)

// Check returns what is wrong with the expressions of a Receiver, in the words of its condition, with the field first; nil for
// nothing. It asks nobody.
func Check(ctx context.Context, of *notificationv1.Receiver) error {
	r := &Reconciler{lines: expression.NewCompiler(expression.Limits{})}
	_, err := r.compile(ctx, &state{object: of})
	return err
}

// Serves reports whether objects of a kind that Receivers may name are looked at.
func Serves(kind string) bool {
	_, served := kinds[kind]
	return served
}
