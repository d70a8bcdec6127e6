package client

import (
	"fmt"
	"iter"
	"net/url"
)

// pages walks a list. The sequence ends with an error, if there is one.
func pages[T any](get func(q url.Values) (page []T, next string, err error), q url.Values) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		q.Del("cursor")
		for {
			page, next, err := get(q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
			if next == "" {
				return
			}
			q.Set("cursor", next)
		}
	}
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
