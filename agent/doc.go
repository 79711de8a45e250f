// Package agent is the site's side of a cluster in pull mode: what the loops need
// that run beside a member and only now and then reach their hub.
//
// Its parts are uplink, the way to the hub; shelf, what is known when there is
// none; site, the entry on the hub; heartbeat, the sign of life; and credentials,
// the certificate. The loops themselves are those of push mode. No part of it
// decides what runs where.
package agent
