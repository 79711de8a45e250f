package join

import "context"

// CleanUp removes from the member what Join or Issue created there. Of the
// options it reads Name, Member, Namespace, DryRun and Progress.
func CleanUp(ctx context.Context, o UnjoinOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	return o.cleanUp(ctx)
}
