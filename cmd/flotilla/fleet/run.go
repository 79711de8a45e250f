package fleet

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// sideBySide is how many clusters are asked at the same time: enough to wait for some dozens that
// are away together.
const sideBySide = 64

// Answer is the answer of one cluster.
type Answer[T any] struct {
	// Cluster is the name of the member.
	Cluster string
	// Value is the result of ask; undefined if Err is set.
	Value T
	// Err is why there is no answer.
	Err error
}

// Each calls ask for the clusters concurrently, a limited number at a time, and returns the
// answers in the order of the names. A failure does not affect the others. When ctx ends,
// clusters without an answer fail with its error.
func Each[T any](ctx context.Context, clusters []string, ask func(ctx context.Context, cluster string) (T, error)) []Answer[T] {
	answers := make([]Answer[T], len(clusters))
	var group errgroup.Group
	group.SetLimit(sideBySide)
	for i, cluster := range clusters {
		group.Go(func() error {
			value, err := until(ctx, func() (T, error) { return ask(ctx, cluster) })
			answers[i] = Answer[T]{Cluster: cluster, Value: value, Err: err}
			return nil
		})
	}
	_ = group.Wait() // errors are in the answers
	return answers
}

// Until calls a function that takes no context, as most of kubectl, and returns the error of ctx
// if that ends first. The function is then left running, so Until is only for the last action of
// a program.
func Until(ctx context.Context, run func() error) error {
	_, err := until(ctx, func() (struct{}, error) { return struct{}{}, run() })
	return err
}

func until[T any](ctx context.Context, run func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var nothing T
	if err := ctx.Err(); err != nil {
		return nothing, err
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := run()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return nothing, ctx.Err()
	}
}
