// Makes rate.json from golang.org/x/time/rate: random requests to token buckets, and what it says of each.
//
//	apt-get install golang-go golang-golang-x-time-dev
//	GO111MODULE=off GOPATH=/usr/share/gocode go run rate.go > rate.json
//	npx biome format --write rate.json
package main

import (
	"fmt"
	"math/rand"
	"time"

	"golang.org/x/time/rate"
)

func main() {
	random := rand.New(rand.NewSource(1))
	start := time.Unix(1700000000, 0)
	fmt.Println("[")
	shapes := []struct {
		limit, burst int
	}{{10, 3}, {10, 1}, {100, 20}, {7, 50}, {1000, 1000}, {3, 2}}
	for place, shape := range shapes {
		allow := rate.NewLimiter(rate.Limit(shape.limit), shape.burst)
		reserve := rate.NewLimiter(rate.Limit(shape.limit), shape.burst)
		fmt.Printf("{\"limit\":%d,\"burst\":%d,\"rows\":[\n", shape.limit, shape.burst)
		at := int64(0) // microseconds
		for row := 0; row < 400; row++ {
			units := 1 + random.Intn(1+shape.burst/2)
			if random.Intn(10) < 7 {
				at += random.Int63n(2 * int64(units) * 1000000 / int64(shape.limit))
			} else if random.Intn(10) == 0 {
				at += random.Int63n(2 * int64(shape.burst) * 1000000 / int64(shape.limit))
			}
			now := start.Add(time.Duration(at) * time.Microsecond)
			allowed := 0
			if allow.AllowN(now, units) {
				allowed = 1
			}
			wait := reserve.ReserveN(now, units).DelayFrom(now)
			end := ","
			if row == 399 {
				end = "]}"
			}
			fmt.Printf("[%d,%d,%d,%d]%s\n", at, units, allowed, wait.Microseconds(), end)
		}
		if place < len(shapes)-1 {
			fmt.Println(",")
		}
	}
	fmt.Println("]")
}
