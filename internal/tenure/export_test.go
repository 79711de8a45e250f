package tenure

import "context"

// NewEpoch makes a new epoch; for tests that stop a leader between the lease and that.
func (l *Lock) NewEpoch(ctx context.Context) (string, error) { return l.newEpoch(ctx) }

// Tenure is the one that the lock is for.
func (l *Lock) Tenure() *Tenure { return l.tenure }
