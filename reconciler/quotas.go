package reconciler

import (
	"context"

	"github.com/flotilla-io/flotilla/reconciler/quota"
	"github.com/flotilla-io/flotilla/reconciler/quotashare"
)

func registerQuota(_ context.Context, f *fleet) error {
	return quota.New(f.mgr.GetClient(), f.events, quota.Options{}).Register(f.mgr)
}

func registerQuotaShare(_ context.Context, f *fleet) error {
	return quotashare.New(f.mgr.GetClient(), f.events, quotashare.Options{Skip: f.opts.Skip}).Register(f.mgr)
}
