// SPDX-License-Identifier: GPL-2.0-only
/* The ledger and the accounts of scx_economy: scheds/rust/scx_economy/src/bpf/{ledger,account}.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <account.h>
#include <ledger.h>

#include <cmocka.h>

#define NR_ROUNDS 3000000
#define NR_TASKS 24
#define NR_LEDGERS 3
#define NR_ACCOUNTS 8
#define UNIT ECONOMY_UNIT
#define MS 1000000LL

/* Money is CPU time that tasks owe or are owed. It is in these places only: the bank and the pot
 * (CPU time not handed out yet) of each ledger, the lag of each task, and the balance of each
 * account. */
struct world {
	struct economy_ledger ledgers[NR_LEDGERS];
	struct economy_share tasks[NR_TASKS];
	int at[NR_TASKS]; /* index of the ledger */
	s64 balances_ns[NR_ACCOUNTS];
};

static u64 random_below(u64 max)
{
	return ((u64)random() << 31 ^ (u64)random()) % max;
}

static u32 random_weight(void)
{
	static const u32 weights[] = { 1, 3, 88, 100, 100, 100, 335, 9999, SCX_WEIGHT_MAX };

	return weights[random() % 9];
}

/* Return the sum of all money, with the lags that the tasks would have if they were settled now. */
static __int128 sum(const struct world *w)
{
	__int128 sum = 0;
	int i;

	for (i = 0; i < NR_LEDGERS; i++)
		sum += (__int128)w->ledgers[i].bank + w->ledgers[i].pot;
	for (i = 0; i < NR_TASKS; i++) {
		struct economy_share share = w->tasks[i];

		if (share.weight)
			economy_settle(&w->ledgers[w->at[i]], &share);
		sum += share.lag;
	}
	for (i = 0; i < NR_ACCOUNTS; i++)
		sum += (__int128)w->balances_ns[i] * UNIT;
	return sum;
}

static void leave(struct world *w, int i)
{
	if (w->tasks[i].weight)
		economy_leave(&w->ledgers[w->at[i]], &w->tasks[i]);
}

static void wake(struct world *w, int i)
{
	leave(w, i);
	w->at[i] = random() % NR_LEDGERS;
	economy_join(&w->ledgers[w->at[i]], &w->tasks[i], random_weight());
}

static void run(struct world *w, int i)
{
	struct economy_ledger *ledger = &w->ledgers[w->at[i]];
	struct economy_share *share = &w->tasks[i];

	if (!share->weight)
		return;
	economy_charge(ledger, share, random_below(20 * MS));
	economy_settle(ledger, share);
	ledger->bank +=
		economy_bound(share, -(s64)(1000 * MS * share->weight), 1000 * MS * share->weight);
}

static void sleep_(struct world *w, int i)
{
	leave(w, i);
	w->ledgers[w->at[i]].bank += economy_bound(&w->tasks[i], -30 * MS * UNIT, 30 * MS * UNIT);
}

static void pay(struct world *w, int i)
{
	s64 *balance = &w->balances_ns[random() % NR_ACCOUNTS];
	s64 amount = economy_payment(100000, economy_lag_ns(&w->ledgers[w->at[i]], &w->tasks[i]),
				     random_below(3 * MS), 30 * MS - *balance, random() % 2);

	w->tasks[i].lag -= amount * UNIT;
	*balance += amount;
	assert_in_range(*balance, 0, 30 * MS);
}

static void withdraw(struct world *w, int i)
{
	s64 *balance = &w->balances_ns[random() % NR_ACCOUNTS];
	s64 amount = economy_withdrawal(*balance, random_below(1000));

	assert_in_range(amount, 0, *balance);
	w->tasks[i].lag += amount * UNIT;
	*balance -= amount;
}

/* Whatever tasks do, and in whatever order, the sum is zero at all times, and the remainder in the
 * pot stays small. */
static void test_money_is_conserved(void **state)
{
	void (*const acts[])(struct world *, int) = { wake, run, run, run, sleep_, pay, withdraw };
	struct world w = {};
	int round, i;

	srandom(1);
	for (round = 0; round < NR_ROUNDS; round++) {
		acts[random() % 7](&w, random() % NR_TASKS);
		if (round % 16 && round < NR_ROUNDS - 1000)
			continue;
		assert_true(sum(&w) == 0);
		for (i = 0; i < NR_LEDGERS; i++)
			assert_true(w.ledgers[i].pot < NR_TASKS * SCX_WEIGHT_MAX);
	}
}

/* Two runnable tasks earn in proportion to their weights. Together they earn the CPU time that one
 * of them uses. */
static void test_entitlement_follows_the_weights(void **state)
{
	struct economy_ledger ledger = {};
	struct economy_share a = {}, b = {};

	economy_join(&ledger, &a, 100);
	economy_join(&ledger, &b, 300);
	economy_charge(&ledger, &a, 4 * MS);
	economy_settle(&ledger, &a);
	economy_settle(&ledger, &b);
	assert_int_equal(a.lag, (1 - 4) * MS * UNIT);
	assert_int_equal(b.lag, 3 * MS * UNIT);
	/* The virtual time of a is 3 ms ahead of the ledger's, and that of b 1 ms behind. */
	assert_int_equal(ledger.vtime_now, 1 * MS);
	assert_int_equal(economy_vtime(&a), 4 * MS);
	assert_int_equal(economy_vtime(&b), 0);
}

/* A task that sleeps earns nothing, and costs the other tasks nothing. */
static void test_sleeping_task_keeps_its_lag(void **state)
{
	struct economy_ledger ledger = {};
	struct economy_share a = {}, b = {};

	economy_join(&ledger, &a, 100);
	economy_join(&ledger, &b, 100);
	economy_charge(&ledger, &a, 2 * MS);
	economy_leave(&ledger, &b);
	assert_int_equal(b.lag, 1 * MS * UNIT);
	economy_charge(&ledger, &a, 50 * MS);
	economy_settle(&ledger, &a);
	assert_int_equal(a.lag, -1 * MS * UNIT);
	economy_join(&ledger, &b, 100);
	economy_settle(&ledger, &b);
	assert_int_equal(b.lag, 1 * MS * UNIT);
}

/* The bank hands out at most a quarter of the CPU time that tasks use. While the bank is negative,
 * it takes back at most as much. */
static void test_bank_spends_a_quarter_of_what_tasks_use(void **state)
{
	struct economy_ledger ledger = { .bank = 3 * MS * UNIT };
	struct economy_share a = {};

	economy_join(&ledger, &a, 100);
	economy_charge(&ledger, &a, 8 * MS);
	assert_int_equal(ledger.bank, 1 * MS * UNIT);
	economy_charge(&ledger, &a, 8 * MS);
	assert_int_equal(ledger.bank, 0);
	economy_settle(&ledger, &a);
	assert_int_equal(a.lag, 3 * MS * UNIT);
	ledger.bank = -3 * MS * UNIT;
	economy_charge(&ledger, &a, 16 * MS);
	economy_settle(&ledger, &a);
	assert_int_equal(ledger.bank, 0);
	assert_int_equal(a.lag, 0);
}

static void test_bounds_are_kept(void **state)
{
	struct economy_share share = { .lag = 50 };

	assert_int_equal(economy_bound(&share, -10, 40), 10);
	assert_int_equal(share.lag, 40);
	share.lag = -50;
	assert_int_equal(economy_bound(&share, -10, 40), -40);
	assert_int_equal(share.lag, -10);
	assert_int_equal(economy_bound(&share, -10, 40), 0);
}

/* The extremes are the lightest and the heaviest task, and a day of CPU time. */
static void test_no_overflow(void **state)
{
	const u64 day_ns = 86400 * 1000 * MS;
	struct economy_ledger ledger = {};
	struct economy_share light = {}, heavy = {};

	economy_join(&ledger, &light, 0);
	assert_int_equal(light.weight, 1);
	economy_join(&ledger, &heavy, 20000);
	assert_int_equal(heavy.weight, SCX_WEIGHT_MAX);
	economy_charge(&ledger, &light, day_ns);
	economy_settle(&ledger, &light);
	economy_settle(&ledger, &heavy);
	assert_true(light.lag < 0 && heavy.lag > 0);
	assert_true(light.lag + heavy.lag + (s64)ledger.pot == 0);
	assert_true(time_after(economy_vtime(&light), economy_vtime(&heavy)));
}

static void test_price_is_paid_whole_or_not_at_all(void **state)
{
	assert_int_equal(economy_payment(100, 200, 50, 1000, false), 100);
	assert_int_equal(economy_payment(100, 150, 50, 1000, false), 100);
	assert_int_equal(economy_payment(100, 149, 50, 1000, false), 0);
	assert_int_equal(economy_payment(100, 149, 50, 1000, true), 99);
	assert_int_equal(economy_payment(100, 200, 50, 99, false), 0);
	assert_int_equal(economy_payment(100, 200, 50, 99, true), 99);
	assert_int_equal(economy_payment(100, -1, 0, 1000, true), 0);
	assert_int_equal(economy_payment(100, 1000, 0, -5, true), 0);
}

static void test_receiver_gets_the_part_of_its_message(void **state)
{
	assert_int_equal(economy_withdrawal(1000, 0), 1000);
	assert_int_equal(economy_withdrawal(1000, 9), 100);
	assert_int_equal(economy_withdrawal(7, 1), 3);
	assert_int_equal(economy_withdrawal(0, 0), 0);
}

static void test_lag_in_ns_is_rounded_toward_zero(void **state)
{
	struct economy_ledger ledger = { .vtime_now = 10 };
	struct economy_share share = { .lag = -150, .vtime = 5 };

	assert_int_equal(economy_lag_ns(&ledger, &share), -1);
	share.weight = 100;
	assert_int_equal(economy_lag_ns(&ledger, &share), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_money_is_conserved),
		cmocka_unit_test(test_entitlement_follows_the_weights),
		cmocka_unit_test(test_sleeping_task_keeps_its_lag),
		cmocka_unit_test(test_bank_spends_a_quarter_of_what_tasks_use),
		cmocka_unit_test(test_bounds_are_kept),
		cmocka_unit_test(test_no_overflow),
		cmocka_unit_test(test_price_is_paid_whole_or_not_at_all),
		cmocka_unit_test(test_receiver_gets_the_part_of_its_message),
		cmocka_unit_test(test_lag_in_ns_is_rounded_toward_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
