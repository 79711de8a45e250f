package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Relieve reports whether the store has reached Options.QuotaBytes and refuses writes. If it
// has, Relieve first removes overwritten and deleted data. If at least a tenth of the quota
// is free then, it makes the store accept writes again and returns false. Meanwhile the
// store does not answer, for some seconds per GiB.
func (s *Server) Relieve(ctx context.Context) (full bool, err error) {
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return false, fmt.Errorf("etcd alarms: %w", err)
	}
	for _, alarm := range alarms.Alarms {
		if alarm.Alarm.String() == "NOSPACE" {
			return s.reclaim(ctx, (*clientv3.AlarmMember)(alarm))
		}
	}
	return false, nil
}

func (s *Server) reclaim(ctx context.Context, alarm *clientv3.AlarmMember) (full bool, err error) {
	revision, err := s.Revision(ctx)
	if err != nil {
		return true, err
	}
	if revision > s.compacted {
		if _, err := s.client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
			return true, fmt.Errorf("compact etcd: %w", err)
		}
		s.compacted = revision
	}
	status, err := s.client.Status(ctx, s.endpoint)
	if err != nil {
		return true, fmt.Errorf("etcd status: %w", err)
	}
	if status.DbSizeInUse > s.quota-s.quota/10 {
		return true, nil
	}
	if _, err := s.client.Defragment(ctx, s.endpoint); err != nil {
		return true, fmt.Errorf("defragment etcd: %w", err)
	}
	if _, err := s.client.AlarmDisarm(ctx, alarm); err != nil {
		return true, fmt.Errorf("etcd alarms: %w", err)
	}
	return false, nil
}
