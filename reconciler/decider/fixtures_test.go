package decider

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/reconciler/decider/decidertest"
)

// What the tests of this package place, and where.
var (
	cluster  = decidertest.Cluster
	capacity = decidertest.Cores
	bound    = decidertest.Binding
	divided  = decidertest.Divided
	apart    = decidertest.Apart
)

func hubOf(objects ...client.Object) *fake.ClientBuilder {
	return decidertest.Hub(func(i client.FieldIndexer) error { return Index(context.Background(), i) }, objects...)
}
